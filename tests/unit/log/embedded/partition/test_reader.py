"""Reading a partition: every record from an offset on, in order, once, with what its frame knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from headwater.errors import DamagedLog, OffsetLost
from headwater.log.embedded import EmbeddedLog
from headwater.log.embedded.partition import frame, reader, segment
from headwater.log.embedded.partition.reader import FrameReader

COUNT = 30


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with EmbeddedLog(tmp_path / "log", durability="os", segment_bytes=1000) as log:
        log.create_topic("t", "n INT")
        with log.producer("t", id="p") as producer:
            for start in range(0, COUNT, 3):
                producer.send_batch([{"n": n} for n in range(start, start + 3)])
                producer.flush()
        yield log


@pytest.fixture
def directory(log: EmbeddedLog) -> Path:
    assert len(segment.listing(log.root / "topics/t/0")) > 2
    return log.root / "topics/t/0"


def offsets(directory: Path, start: int, size: int) -> list[int]:
    found: list[int] = []
    with closing(FrameReader(directory, start)) as frames:
        while some := frames.frames(size):
            for each in some:
                found += range(each.header.base, each.header.last + 1)
            assert frames.offset == found[-1] + 1
    return found


@pytest.mark.parametrize("size", [frame.HEADER_MAX, 500, 1 << 20])
@pytest.mark.parametrize("start", [0, 4, 15, 29, 30])
def test_frames_come_in_order_without_a_gap_however_few_bytes_are_asked_for(
    directory: Path, start: int, size: int
) -> None:
    assert offsets(directory, start, size) == list(range(start - start % 3, COUNT))


@pytest.mark.parametrize("bounds", [(0, 30), (4, 5), (4, 17), (29, 99), (30, 30)])
def test_records_are_cut_to_the_bounds_and_carry_what_the_frame_knows(
    log: EmbeddedLog, directory: Path, bounds: tuple[int, int]
) -> None:
    rows = []
    with closing(FrameReader(directory, bounds[0])) as frames:
        while some := frames.frames():
            rows += reader.records(some, log.topic("t"), 0, bounds, meta=True).to_pylist()
    wanted = list(range(bounds[0], min(bounds[1], COUNT)))
    for name in ("n", "_offset", "_sequence"):
        assert [row[name] for row in rows] == wanted
    assert {row["_producer"] for row in rows} <= {"p"}


def test_a_segment_that_is_gone_is_an_error_and_never_skipped(directory: Path) -> None:
    first, second, third, *_ = segment.listing(directory)
    second.path.unlink()
    with pytest.raises(DamagedLog) as damaged:
        offsets(directory, 0, 500)
    assert damaged.value.resume == third.base
    first.path.unlink()
    with pytest.raises(OffsetLost) as lost:
        offsets(directory, 0, 500)
    assert (lost.value.missed, lost.value.earliest) == (third.base, third.base)


@pytest.mark.parametrize("spoil", [lambda head: head.unlink(), lambda head: head.write_bytes(b"garbage")])
def test_where_the_head_cannot_tell_the_end_is_worked_out_from_whole_batches(
    directory: Path, spoil: Callable[[Path], object]
) -> None:
    published = reader.published(directory)
    spoil(directory / "head")
    assert reader.published(directory) is None
    assert reader.worked_out(directory) == published
    last = segment.listing(directory)[-1].path
    with open(last, "ab") as file:
        file.write(b"HWF1 an unfinished append")
    assert reader.worked_out(directory) == published
    assert not reader.broken(directory)


def test_damage_with_whole_frames_behind_it_is_no_unfinished_append(tmp_path: Path) -> None:
    with EmbeddedLog(tmp_path / "log", durability="os") as log:
        log.create_topic("t", "n INT")
        with log.producer("t") as producer:
            for n in range(2):
                producer.send_batch([{"n": n}])
                producer.flush()
    directory = log.root / "topics/t/0"
    assert not reader.broken(directory)
    [only] = segment.listing(directory)
    only.path.write_bytes(b"?" + only.path.read_bytes()[1:])
    assert reader.broken(directory)


def test_a_partition_to_which_nothing_was_appended_is_new_and_ends_at_nought(tmp_path: Path) -> None:
    assert reader.is_new(tmp_path)
    assert reader.worked_out(tmp_path).end == 0
    (tmp_path / "head").write_bytes(bytes(57))  # something was, and is lost
    assert not reader.is_new(tmp_path)
    with pytest.raises(DamagedLog, match="cannot be read"):
        reader.worked_out(tmp_path)
