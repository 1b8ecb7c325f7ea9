"""Committed offsets, members and epochs, stored in SQLite: all or nothing, and never into a deleted file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from headwater import topic as topics
from headwater.errors import LogRefused, LogUnavailable, UsageError
from headwater.log.embedded.state_store import SharedEpochs, StateStore, store_offsets

TOPIC = replace(topics.create("orders", "id BIGINT"), id="first")
AGAIN = replace(TOPIC, id="second")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@pytest.fixture
def state(path: Path) -> Iterator[StateStore]:
    state = StateStore(path)
    yield state
    state.close()


def test_committed_offsets_are_set_in_the_partitions_that_are_named(state: StateStore) -> None:
    state.set_committed("g", TOPIC, {0: 3, 1: 4})
    state.set_committed("g", TOPIC, {1: 9})
    assert state.committed("g", "first") == {0: 3, 1: 9}
    assert state.committed("other", "first") == {}


def test_what_was_committed_of_an_earlier_topic_of_the_name_is_found_until_the_group_is_moved(
    state: StateStore,
) -> None:
    state.set_committed("g", TOPIC, {0: 3})
    state.forget("first")
    assert state.former("g", TOPIC) is None
    assert state.former("g", AGAIN) == "first"
    state.set_committed("g", AGAIN, {0: 0})
    assert state.former("g", AGAIN) is None


def test_an_epoch_is_higher_than_any_before_and_than_the_one_named(path: Path, state: StateStore) -> None:
    epochs = SharedEpochs(state, "first", "p")
    assert (epochs.current(), epochs.next(0), epochs.next(0), epochs.next(6)) == (0, 1, 2, 7)
    other = StateStore(path)
    assert SharedEpochs(other, "first", "p").current() == 7
    assert SharedEpochs(other, "second", "p").current() == 0
    other.close()


def test_a_transaction_that_fails_changes_nothing(path: Path, state: StateStore) -> None:
    state.set_committed("g", TOPIC, {0: 3})
    with pytest.raises(ZeroDivisionError), state.transaction() as db:
        store_offsets(db, "g", TOPIC, {0: 5})
        raise ZeroDivisionError
    assert state.committed("g", "first") == {0: 3}


def test_the_version_differs_when_another_connection_has_changed_the_state(
    path: Path, state: StateStore
) -> None:
    before = state.version()
    assert state.version() == before
    other = StateStore(path)
    other.set_committed("g", TOPIC, {0: 3})
    other.close()
    assert state.version() != before


def test_a_group_is_forgotten_only_where_none_of_its_members_lives(state: StateStore) -> None:
    state.set_committed("g", TOPIC, {0: 3})
    with state.transaction() as db:
        db.execute("INSERT INTO members VALUES ('g', 'first', 'm', 0)")
    asked: list[tuple[str, str]] = []
    assert not state.forget_group("g", lambda *member: asked.append(member) or True)  # type: ignore[func-returns-value]
    assert state.committed("g", "first") == {0: 3}
    assert state.forget_group("g", lambda *member: False)
    assert state.committed("g", "first") == {}
    assert asked == [("first", "m")]


def test_nothing_is_stored_into_a_file_that_was_deleted(path: Path, state: StateStore) -> None:
    path.unlink()
    with pytest.raises(LogRefused, match="are gone"):
        state.set_committed("g", TOPIC, {0: 3})


def test_a_file_that_is_no_database_is_refused_and_a_closed_one_says_so(path: Path) -> None:
    path.write_bytes(b"no database" * 100)
    with pytest.raises(LogUnavailable, match="cannot be used"):
        StateStore(path)
    path.unlink()
    state = StateStore(path)
    state.close()
    with pytest.raises(UsageError, match="the log is closed"):
        state.committed("g", "first")
