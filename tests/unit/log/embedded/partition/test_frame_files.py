from __future__ import annotations

from pathlib import Path

import pytest

from headwater.errors import DamagedLog
from headwater.log.embedded import EmbeddedLog
from headwater.log.embedded.partition import segment
from headwater.log.embedded.partition.frame_files import FrameFiles


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Fifty frames in several segments."""
    with EmbeddedLog(tmp_path / "log", durability="os", segment_bytes=1000) as log:
        log.create_topic("t", "n INT")
        with log.producer("t") as producer:
            for n in range(50):
                producer.send({"n": n})
                producer.flush()
    return tmp_path / "log" / "topics" / "t" / "0"


def test_all_frames_between_two_places_come_over_segments(directory: Path) -> None:
    files, last = FrameFiles(directory), segment.listing(directory)[-1]
    found = list(files.between(0, 0, last.base, last.path.stat().st_size))
    assert [each.header.base for each in found] == list(range(50))
    assert len({each.segment for each in found}) > 8, "more segments than are held open"
    middle = found[20]
    assert files.at(middle.segment, middle.at, 20).header == middle.header
    assert files.header(middle.segment, middle.at) == middle.header
    rest = list(files.between(middle.segment, middle.at, last.base, last.path.stat().st_size))
    assert [each.header.base for each in rest] == list(range(20, 50))
    assert list(files.between(middle.segment, middle.at, middle.segment, middle.at)) == []
    files.close()


def test_damage_is_reported(directory: Path) -> None:
    first = segment.listing(directory)[0].path
    data = bytearray(first.read_bytes())
    data[150] ^= 0xFF
    first.write_bytes(data)
    files = FrameFiles(directory)
    with pytest.raises(DamagedLog):
        files.at(0, 0, 0)
    with pytest.raises(DamagedLog):
        list(files.between(0, 0, 0, len(data)))
    files.close()


def test_a_header_that_is_not_there_is_none(directory: Path) -> None:
    files = FrameFiles(directory)
    assert files.header(999, 0) is None
    assert files.header(0, 10**9) is None
    files.close()
