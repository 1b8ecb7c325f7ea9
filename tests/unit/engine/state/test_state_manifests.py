"""The manifests of a node's states: which is the one before a micro-batch, and what is swept away."""

from __future__ import annotations

import uuid
import zlib
from pathlib import Path

import pytest

from headwater.engine.files.local_files import LocalFiles
from headwater.engine.state import state_manifests
from headwater.engine.state.bucket import BucketMeta
from headwater.engine.state.state_manifests import RETAINED, StateManifests
from headwater.errors import Fenced, HeadwaterError
from headwater.operators.memory.operator_memory import StoredMemory
from headwater.operators.memory.run import Stretch
from headwater.operators.memory.sorted_runs import StoredRuns


def begun(home: Path) -> StateManifests:
    states = StateManifests(LocalFiles(home))
    states.begin()
    return states


def chunk(states: StateManifests, token: str) -> BucketMeta:
    (Path(states.files.location) / file(token)).write_bytes(b"x")
    return BucketMeta(StoredMemory({"rows": StoredRuns((Stretch(file(token), 1),))}), next_timer=7)


def file(token: str) -> str:
    return f"{zlib.crc32(token.encode()):016x}"


def stored(states: StateManifests) -> set[str]:
    return {path.name for path in Path(states.files.location).iterdir() if len(path.name) == 16}


def test_a_repeated_micro_batch_begins_from_the_manifest_before_it(tmp_path: Path) -> None:
    states = begun(tmp_path)
    assert states.before(0) == {}
    states.commit(0, {1: chunk(states, "a")})
    states.commit(1, {1: chunk(states, "b"), 2: chunk(states, "c")})
    again = begun(tmp_path)
    assert [meta.stored[0].file for meta in again.before(1).values()] == [file("a")]
    again.commit(1, {1: chunk(again, "d")})
    assert {number: meta.stored[0].file for number, meta in again.before(2).items()} == {1: file("d")}


def test_micro_batches_without_a_manifest_leave_things_as_they_were(tmp_path: Path) -> None:
    states = begun(tmp_path)
    states.commit(3, {1: chunk(states, "a")})
    states.commit(9, {2: chunk(states, "b")})
    assert set(states.before(9)) == {1}
    assert set(begun(tmp_path).before(100)) == {1, 2}


def test_chunks_that_no_retained_manifest_names_are_removed(tmp_path: Path) -> None:
    states = begun(tmp_path)
    for number in range(RETAINED + 2):
        states.commit(number, {0: chunk(states, f"of-{number}")})
    assert stored(states) == {file(f"of-{number}") for number in range(2, RETAINED + 2)}
    chunk(states, "of-a-task-that-failed")
    assert file("of-a-task-that-failed") not in stored(begun(tmp_path))


def test_what_a_replaced_runner_still_writes_does_not_count(tmp_path: Path) -> None:
    old = begun(tmp_path)
    old.commit(0, {0: chunk(old, "first")})
    new = begun(tmp_path)
    new.commit(1, {0: chunk(new, "new")})
    with pytest.raises(Fenced, match="another runner has taken over this node"):
        old.commit(1, {0: chunk(old, "old")})
    assert begun(tmp_path).before(2)[0].stored[0].file == file("new")


def test_a_runner_is_fenced_as_soon_as_another_has_begun(tmp_path: Path) -> None:
    old = begun(tmp_path)
    begun(tmp_path)
    with pytest.raises(Fenced):
        old.commit(0, {0: chunk(old, "old")})
    assert begun(tmp_path).before(1) == {}


def test_a_runner_that_wakes_long_after_finds_its_number_taken(tmp_path: Path) -> None:
    old = begun(tmp_path)
    old.commit(0, {0: chunk(old, "first")})
    for number in range(1, 4 * RETAINED):
        new = begun(tmp_path)
        new.commit(number, {0: chunk(new, f"of-{number}")})
    with pytest.raises(Fenced):
        old.commit(1, {0: chunk(old, "old")})
    assert begun(tmp_path).before(100)[0].stored[0].file == file(f"of-{4 * RETAINED - 1}")


def test_marks_of_runners_are_not_kept_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_manifests, "MARKS", 4)
    for number in range(12):
        states = begun(tmp_path)
        states.commit(number, {0: chunk(states, f"of-{number}")})
    assert len(list(tmp_path.glob("*.json"))) <= 4 + 1 + RETAINED


def test_what_one_that_takes_over_meanwhile_stores_is_not_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept = StateManifests._sweep

    def late(states: StateManifests, candidates: set[str]) -> None:
        monkeypatch.setattr(StateManifests, "_sweep", swept)
        newer = begun(tmp_path)
        newer.commit(0, {0: chunk(newer, "newer")})
        swept(states, candidates)

    chunk(StateManifests(LocalFiles(tmp_path)), "left over")
    monkeypatch.setattr(StateManifests, "_sweep", late)
    begun(tmp_path)
    assert begun(tmp_path).before(1)[0].stored[0].file == file("newer")
    assert file("left over") not in stored(begun(tmp_path))


def test_a_manifest_of_an_earlier_release_is_never_taken_for_none(tmp_path: Path) -> None:
    (tmp_path / "3.1.json").write_text("{}")
    with pytest.raises(HeadwaterError, match="an earlier release has written it"):
        begun(tmp_path)


def test_a_manifest_that_was_not_finished_is_not_seen(tmp_path: Path) -> None:
    states = begun(tmp_path)
    states.commit(0, {0: chunk(states, "a")})
    (tmp_path / f".1.json-{uuid.uuid4().hex}").write_text('{"0": [')
    assert set(begun(tmp_path).before(5)) == {0}


def test_a_micro_batch_may_be_repeated_any_number_of_times(tmp_path: Path) -> None:
    states = begun(tmp_path)
    for number in range(5):
        states.commit(number, {0: chunk(states, f"of-{number}")})
    for attempt in range(2 * RETAINED):
        again = begun(tmp_path)
        assert again.before(5)[0].stored[0].file == file("of-4")
        again.commit(5, {0: chunk(again, f"attempt-{attempt}")})


def test_the_first_micro_batch_may_be_repeated_too(tmp_path: Path) -> None:
    for number in range(4):
        states = begun(tmp_path)
        assert states.before(0) == {}
        states.commit(0, {0: chunk(states, f"of-{number}")})


def test_a_state_that_is_no_longer_kept_is_never_taken_for_none(tmp_path: Path) -> None:
    states = begun(tmp_path)
    assert states.before(0) == {}
    for number in range(RETAINED + 1):
        states.commit(number, {0: chunk(states, f"of-{number}")})
    with pytest.raises(HeadwaterError, match="the state before batch 1 is no longer kept"):
        begun(tmp_path).before(1)


@pytest.mark.parametrize("left", [None, b""])
def test_a_chunk_that_is_lost_or_cut_is_refused_where_its_manifest_counts(
    tmp_path: Path, left: bytes | None
) -> None:
    states = begun(tmp_path)
    states.commit(0, {0: chunk(states, "a")})
    states.commit(1, {0: chunk(states, "b")})
    (tmp_path / file("b")).unlink()
    if left is not None:
        (tmp_path / file("b")).write_bytes(left)
    again = begun(tmp_path)
    assert again.before(1)[0].stored[0].file == file("a"), "a micro-batch that was not committed is repeated"
    with pytest.raises(HeadwaterError, match=f'file ".*{file("b")}" of a pipeline is damaged'):
        again.before(2)


def test_a_manifest_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    states = begun(tmp_path)
    states.commit(0, {0: chunk(states, "a")})
    (tmp_path / "2.json").write_text('{"0": [')
    with pytest.raises(HeadwaterError, match=r'2\.json" of a pipeline is damaged'):
        begun(tmp_path)
