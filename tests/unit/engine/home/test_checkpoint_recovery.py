"""What a power loss or a kill leaves of a checkpoint: what nobody relies on goes, the rest is refused."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.engine.home import checkpoint
from headwater.engine.home.checkpoint_recovery import recover
from headwater.errors import HeadwaterError
from headwater.log import Position

COMMIT = b'v1\n{"nextBatchWatermarkMs":0}'


def planned(end: int) -> bytes:
    """Return a plan as Spark stores it, for two inputs."""
    told = {
        name: {"topic": name, "id": "8b1f", "timed": False, "offsets": {"0": end}, "clock": 0, "claims": {}}
        | {"heard": 0, "silent": False, "furthest": 0}
        for name in ("orders", "rates")
    }
    return "\n".join(["v1", '{"batchWatermarkMs":0}', json.dumps(told)]).encode()


def checkpointed(path: Path, *, plans: int, done: int) -> Path:
    """Make a checkpoint with some micro-batches planned, and some of them done."""
    checkpoint.write_start(path, {name: Position(name, {0: 0}) for name in ("orders", "rates")})
    (path / "metadata").write_text('{"id":"the old one"}')
    for folder, count in (("offsets", plans), ("commits", done)):
        (path / folder).mkdir()
        for number in range(count):
            (path / folder / str(number)).write_bytes(planned(number) if folder == "offsets" else COMMIT)
    return path


@given(st.integers(0, 2), st.integers(0, len(planned(2)) - 1))
def test_a_plan_that_was_cut_anywhere_is_made_anew(before: int, length: int) -> None:
    with TemporaryDirectory() as root:
        path = checkpointed(Path(root) / "query", plans=before + 1, done=before)
        plan = checkpoint.offsets_file(path, before)
        plan.write_bytes(plan.read_bytes()[:length])
        recover(path)
        assert checkpoint.last_batch(path) == before - 1


@given(st.sets(st.integers(0, 2)), st.integers(0, len(COMMIT) - 1))
def test_a_micro_batch_whose_completion_was_not_noted_whole_is_repeated(torn: set[int], length: int) -> None:
    with TemporaryDirectory() as root:
        path = checkpointed(Path(root) / "query", plans=3, done=3)
        for number in torn:
            (path / "commits" / str(number)).write_bytes(COMMIT[:length])
        recover(path)
        left = {int(each.name) for each in (path / "commits").iterdir()}
        assert left == {0, 1, 2} - torn
        assert checkpoint.last_batch(path) == 2


def test_what_is_whole_stays_as_it_is(tmp_path: Path) -> None:
    path = checkpointed(tmp_path / "query", plans=3, done=2)
    before = {each: each.read_bytes() for each in path.rglob("*") if each.is_file()}
    recover(path)
    assert {each: each.read_bytes() for each in path.rglob("*") if each.is_file()} == before


@pytest.mark.parametrize("plans", [0, 2])
def test_what_was_being_written_when_it_was_killed_goes(tmp_path: Path, plans: int) -> None:
    path = checkpointed(tmp_path / "query", plans=plans, done=plans)
    whole = {each for each in path.rglob("*") if each.is_file()}
    if plans:
        checksum = path / "offsets" / f".{plans - 1}.crc"
        checksum.write_bytes(b"crc")
        whole.add(checksum)
    for name in (f".{plans}.5bb18392.tmp", f"..{plans}.5bb18392.tmp.crc", f".{plans}.crc"):
        (path / "offsets" / name).write_bytes(b"")
        (path / "commits" / name).write_bytes(b"")
    recover(path)
    assert {each for each in path.rglob("*") if each.is_file()} == whole


@pytest.mark.parametrize("left", [None, b"", b'{"id":', b"\0" * 45])
def test_a_checkpoint_without_an_identifier_gets_another(tmp_path: Path, left: bytes | None) -> None:
    path = checkpointed(tmp_path / "query", plans=1, done=1)
    (path / "metadata").unlink()
    if left is not None:
        (path / "metadata").write_bytes(left)
    recover(path)
    assert set(json.loads((path / "metadata").read_text())) == {"id"}


@pytest.mark.parametrize("batch", [1, 2])
def test_a_plan_that_was_acted_on_and_is_damaged_is_refused(tmp_path: Path, batch: int) -> None:
    path = checkpointed(tmp_path / "query", plans=3, done=3)
    checkpoint.offsets_file(path, batch).write_bytes(b"v1\n")
    with pytest.raises(HeadwaterError, match=rf'offsets/{batch}" of a pipeline is damaged'):
        recover(path)


def test_a_plan_that_is_missing_before_the_last_is_refused(tmp_path: Path) -> None:
    path = checkpointed(tmp_path / "query", plans=3, done=2)
    checkpoint.offsets_file(path, 1).unlink()
    with pytest.raises(HeadwaterError, match='offsets/1" of a pipeline is damaged\ndetail: it is missing'):
        recover(path)
