"""The un-synced tail of a partition: whatever a power loss leaves of it, what was acknowledged is there."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import DamagedLog
from headwater.log.embedded import EmbeddedLog
from headwater.log.embedded.log import Durability
from headwater.log.embedded.partition import frame, head, segment
from soaking import examples
from unsynced import Disk, leave, restarted

ROWS = 3
APPENDS = st.lists(st.sampled_from(["alone", "shared", "large", "shared large"]), min_size=1, max_size=6)


def rows(batch: int, large: bool) -> list[dict[str, object]]:
    """A batch of a few rows, or of more than fit into some sectors."""
    text = "".join(Random(batch).choices("abcdefghij", k=1500 if large else 5))
    return [{"batch": batch, "n": n, "text": text} for n in range(ROWS)]


class Appends:
    """Two producers that append to one partition, sometimes the one while the other waits for the disk."""

    def __init__(self, log: EmbeddedLog, disk: Disk | None = None):
        self.disk, self.sent = disk, 0
        self.producers = [log.producer("t", id=name) for name in ("a", "b")]
        for producer in self.producers:
            producer._rouse = lambda event: None  # type: ignore[method-assign]  # only flush appends

    def append(self, how: str) -> None:
        if "shared" in how and self.disk is not None:
            self.disk.before_sync = lambda: self._append(1, "large" in how)
        elif "shared" in how:
            self._append(1, "large" in how)
        self._append(0, "large" in how)
        if self.disk is not None:
            self.disk.interrupt()
        self.sent += 1

    def _append(self, who: int, large: bool) -> None:
        batch, producer = 2 * self.sent + who, self.producers[who]
        producer.send_batch(rows(batch, large), sequence=batch * ROWS)
        producer.flush()
        if self.disk is not None:
            self.disk.acknowledged.add(batch)


@contextmanager
def recorded(appends: list[str], root: Path, durability: Durability = "fsync") -> Iterator[Disk]:
    with (
        EmbeddedLog(root, segment_bytes=2500, durability=durability) as log,
        pytest.MonkeyPatch.context() as patch,
    ):
        log.create_topic("t", "batch INT, n INT, text STRING")
        disk = Disk(root / "topics/t/0", patch)
        producers = Appends(log, disk)
        for how in appends:
            producers.append(how)
        patch.undo()
        yield disk
        disk.close()


def batches(log: EmbeddedLog) -> list[int]:
    """Return the batches in their order, each of which must be whole."""
    found = [row for batch in log.read("t") for row in batch.to_pylist()]
    order = [row["batch"] for row in found[::ROWS]]
    large = {row["batch"]: len(row["text"]) > 5 for row in found}
    assert found == [row for batch in order for row in rows(batch, large[batch])]
    return order


@examples(30)
@given(APPENDS, st.randoms(use_true_random=False), st.data())
def test_what_was_acknowledged_is_there_whatever_a_power_loss_leaves(
    appends: list[str], chance: Random, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder, "before"), Path(folder, "after")
        with recorded(appends, before) as disk:
            most = max(each.unsynced for each in disk.moments)
            worst = [each for each in disk.moments if each.unsynced == most]
            moment = data.draw(st.sampled_from(disk.moments) | st.sampled_from(worst))
        shutil.copytree(before, after, ignore=lambda folder, _: ["0"] if folder.endswith("topics/t") else [])
        (after / "topics/t/0").mkdir()
        leave(moment, after / "topics/t/0", chance)
        restarted(after / "topics/t/0")
        with EmbeddedLog(after, segment_bytes=2500) as log:
            found = batches(log)
            assert moment.acknowledged <= set(found)
            assert log.verify().findings == ()
            again = Appends(log)
            for how in [*appends, "alone"]:
                again.append(how)
            assert sorted(batches(log)) == sorted(batches_of([*appends, "alone"]))
            assert batches(log)[: len(found)] == found
            assert log.verify().findings == ()


@examples(30)
@given(APPENDS, st.randoms(use_true_random=False), st.data())
def test_what_was_left_to_the_operating_system_loses_its_newest_batches_or_is_told_to_be_damaged(
    appends: list[str], chance: Random, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder, "before"), Path(folder, "after")
        with recorded(appends, before, "os") as disk:
            moment = data.draw(st.sampled_from(disk.moments))
        with EmbeddedLog(before) as log:
            sent = batches(log)
        shutil.copytree(before, after, ignore=lambda folder, _: ["0"] if folder.endswith("topics/t") else [])
        (after / "topics/t/0").mkdir()
        leave(moment, after / "topics/t/0", chance)
        restarted(after / "topics/t/0")
        with EmbeddedLog(after, segment_bytes=2500, durability="os") as log:
            try:
                found = batches(log)
            except DamagedLog:
                return
            assert found == sent[: len(found)]
            Appends(log).append("alone")
            assert batches(log)[: len(found)] == found


def batches_of(appends: list[str]) -> list[int]:
    return [
        2 * number + who
        for number, how in enumerate(appends)
        for who in ((0, 1) if "shared" in how else (0,))
    ]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with EmbeddedLog(tmp_path / "log") as log:
        log.create_topic("t", "batch INT, n INT, text STRING")
        with log.producer("t") as producer:
            for batch in range(3):
                producer.send_batch(rows(batch, False))
                producer.flush()
        yield log


def places(path: Path) -> list[int]:
    with open(path, "rb") as file:
        walked = segment.walk(file.fileno(), 0, path.stat().st_size)
        return [at for at, found in walked if isinstance(found, frame.Header)]


def with_unacknowledged(log: EmbeddedLog, stale: int) -> tuple[Path, int]:
    """Take the head back by some batches, as if its last writes had not reached the disk."""
    directory = log.root / "topics/t/0"
    path = next(directory.glob("*.log"))
    at = places(path)[-stale]
    with open(directory / "head", "r+b") as file:
        written = head.read(file.fileno())
        assert written is not None
        header = frame.unpack(path.read_bytes(), at)
        assert header is not None
        head.write(file.fileno(), written.head._replace(size=at, end=header.base), True)
    restarted(directory)
    return path, at


@pytest.mark.parametrize("what", ["header", "payload"])
def test_a_hole_in_the_tail_is_cut_with_what_lies_behind_it(log: EmbeddedLog, what: str) -> None:
    path, at = with_unacknowledged(log, 2)
    data = bytearray(path.read_bytes())
    start = at if what == "header" else places(path)[-1] - 20
    data[start : start + 10] = bytes(10)
    path.write_bytes(data)
    with EmbeddedLog(log.root) as again:
        assert batches(again) == [0]
        with again.producer("t") as producer:
            producer.send_batch(rows(7, False))
        assert batches(again) == [0, 7]
        assert again.verify().findings == ()


def test_a_hole_in_what_the_head_had_named_is_damage(log: EmbeddedLog) -> None:
    path, _ = with_unacknowledged(log, 1)
    data = bytearray(path.read_bytes())
    start = places(path)[-2]
    data[start : start + 10] = bytes(10)
    path.write_bytes(data)
    with EmbeddedLog(log.root) as again:
        with pytest.raises(DamagedLog):
            batches(again)
        with pytest.raises(DamagedLog), again.producer("t") as producer:
            producer.send_batch(rows(7, False))
        assert again.verify().findings
    assert path.read_bytes() == bytes(data)


def test_a_head_that_names_the_segment_before_hides_nothing(tmp_path: Path) -> None:
    """Heads are not synced: the newest may be lost, though it began a segment that was."""
    directory = tmp_path / "log/topics/t/0"
    with EmbeddedLog(tmp_path / "log", segment_bytes=600) as log:
        log.create_topic("t", "batch INT, n INT, text STRING")
        with log.producer("t") as producer:
            heads = []
            for batch in range(6):
                producer.send_batch(rows(batch, False))
                producer.flush()
                heads.append((directory / "head").read_bytes())
    assert len(list(directory.glob("*.log"))) > 2
    for each in heads:
        (directory / "head").write_bytes(each)
        restarted(directory)
        with EmbeddedLog(tmp_path / "log", segment_bytes=600) as log:
            assert batches(log) == list(range(6))
            assert log.verify().findings == ()
