"""The lists of a node's states: which is the one before a micro-batch, and what is swept away."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.engine.bucket import Chunk, Meta
from headwater.engine.states import KEPT, States
from headwater.errors import HeadwaterError


def begun(home: Path) -> States:
    states = States(home)
    states.begin()
    return states


def chunk(states: States, token: str) -> Meta:
    (states.chunks / token).write_bytes(b"x")
    return Meta((Chunk(token, 1),), wake=7)


def stored(states: States) -> set[str]:
    return {path.name for path in states.chunks.iterdir()}


def test_a_repeated_micro_batch_begins_from_the_list_before_it(tmp_path: Path) -> None:
    states = begun(tmp_path)
    assert states.before(0) == {}
    states.commit(0, {1: chunk(states, "a")})
    states.commit(1, {1: chunk(states, "b"), 2: chunk(states, "c")})
    again = begun(tmp_path)
    assert [meta.chunks[0].token for meta in again.before(1).values()] == ["a"]
    again.commit(1, {1: chunk(again, "d")})
    assert {number: meta.chunks[0].token for number, meta in again.before(2).items()} == {1: "d"}


def test_micro_batches_without_a_list_leave_things_as_they_were(tmp_path: Path) -> None:
    states = begun(tmp_path)
    states.commit(3, {1: chunk(states, "a")})
    states.commit(9, {2: chunk(states, "b")})
    assert set(states.before(9)) == {1}
    assert set(begun(tmp_path).before(100)) == {1, 2}


def test_chunks_that_no_kept_list_names_are_removed(tmp_path: Path) -> None:
    states = begun(tmp_path)
    for number in range(KEPT + 2):
        states.commit(number, {0: chunk(states, f"of-{number}")})
    assert stored(states) == {f"of-{number}" for number in range(2, KEPT + 2)}
    chunk(states, "of-a-task-that-failed")
    assert "of-a-task-that-failed" not in stored(begun(tmp_path))


def test_what_a_replaced_runner_still_writes_does_not_count(tmp_path: Path) -> None:
    old = begun(tmp_path)
    old.commit(0, {0: chunk(old, "first")})
    new = begun(tmp_path)
    new.commit(1, {0: chunk(new, "new")})
    old.commit(1, {0: chunk(old, "old")})
    assert begun(tmp_path).before(2)[0].chunks[0].token == "new"


def test_every_runner_has_a_term_of_its_own(tmp_path: Path) -> None:
    assert [begun(tmp_path)._term for _ in range(4)] == [1, 2, 3, 4]


def test_a_list_that_was_not_finished_is_not_seen(tmp_path: Path) -> None:
    states = begun(tmp_path)
    states.commit(0, {0: chunk(states, "a")})
    (tmp_path / "buckets" / "1.1.draft").write_text('{"0": [')
    assert set(begun(tmp_path).before(5)) == {0}


def test_a_micro_batch_may_be_repeated_any_number_of_times(tmp_path: Path) -> None:
    states = begun(tmp_path)
    for number in range(5):
        states.commit(number, {0: chunk(states, f"of-{number}")})
    for attempt in range(2 * KEPT):
        again = begun(tmp_path)
        assert again.before(5)[0].chunks[0].token == "of-4"
        again.commit(5, {0: chunk(again, f"attempt-{attempt}")})


def test_the_first_micro_batch_may_be_repeated_too(tmp_path: Path) -> None:
    for number in range(4):
        states = begun(tmp_path)
        assert states.before(0) == {}
        states.commit(0, {0: chunk(states, f"of-{number}")})


def test_a_state_that_is_no_longer_kept_is_never_taken_for_none(tmp_path: Path) -> None:
    states = begun(tmp_path)
    assert states.before(0) == {}
    for number in range(KEPT + 1):
        states.commit(number, {0: chunk(states, f"of-{number}")})
    with pytest.raises(HeadwaterError, match="the state before batch 1 is no longer kept"):
        begun(tmp_path).before(1)
