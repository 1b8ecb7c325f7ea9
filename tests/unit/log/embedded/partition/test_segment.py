"""Segments: which are in force, what a walk finds between damage, and where a walk may begin."""

from __future__ import annotations

import os
import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.log.embedded.partition import frame, segment
from headwater.log.embedded.partition.frame import Header, Kind
from headwater.log.embedded.partition.segment import Damage, IndexEntry, Segment


def header(base: int, payload: int = 10) -> Header:
    return Header(Kind.DATA, 0, 0, 1, base, base, 0, base, base, base - 1, base * 100, 0, 0, 0, "p", payload)


def file_of(*parts: bytes) -> int:
    descriptor = os.memfd_create("segment")
    os.write(descriptor, b"".join(parts))
    return descriptor


def framed(base: int, payload: int = 10) -> bytes:
    return frame.pack(header(base, payload)) + bytes(payload)


names = st.tuples(st.integers(0, 30), st.none() | st.integers(1, 15)).map(
    lambda pair: segment.name(pair[0], None if pair[1] is None else pair[0] + pair[1])
)


@given(st.sets(names, max_size=8))
def test_segments_in_force_do_not_overlap_and_cover_what_is_not_in_force(files: set[str]) -> None:
    with tempfile.TemporaryDirectory() as place:
        for each in [*files, "5.log", "head", "00000000000000000001.idx"]:
            (Path(place) / each).touch()
        kept = segment.listing(Path(place))
    assert [each.base for each in kept] == sorted({each.base for each in kept})
    assert all(before.end is None or before.end <= after.base for before, after in pairwise(kept))
    for name in files - {each.path.name for each in kept}:
        base = int(name[:20])
        assert any(each.base <= base < (each.end or each.base + 1) for each in kept)


def test_what_a_compacted_segment_stands_for_is_superseded(tmp_path: Path) -> None:
    for name in ((0, None), (0, 7), (3, None), (4, 6), (7, None), (9, None)):
        (tmp_path / segment.name(*name)).touch()
    assert [(each.base, each.end) for each in segment.listing(tmp_path)] == [(0, 7), (7, None), (9, None)]
    gone = [(each.base, each.end) for each in segment.superseded(tmp_path)]
    assert gone == [(0, None), (3, None), (4, 6)]


@given(st.lists(st.integers(0, 30) | st.binary(min_size=1, max_size=40).filter(lambda b: b"H" not in b)))
def test_a_walk_finds_every_frame_and_tells_damage_between_them(parts: list[int | bytes]) -> None:
    data = [framed(part, payload=part) if isinstance(part, int) else part for part in parts]
    file = file_of(*data)
    try:
        found = list(segment.walk(file, 0, sum(map(len, data))))
    finally:
        os.close(file)
    assert [each.base for _, each in found if isinstance(each, Header)] == [
        part for part in parts if isinstance(part, int)
    ]
    at = 0
    for place, each in found:  # what is found covers the file, without a gap
        assert place == at
        at = each.until if isinstance(each, Damage) else place + each.size()
    assert at == sum(map(len, data))


def test_a_frame_that_is_not_all_there_is_damage() -> None:
    file = file_of(framed(1), framed(2))
    stop = os.fstat(file).st_size - 1
    first, second = segment.walk(file, 0, stop)
    os.close(file)
    assert isinstance(first[1], Header)
    assert second[1] == Damage(len(framed(1)), stop)


@pytest.mark.parametrize("offset", range(8))
def test_a_walk_begins_at_the_nearest_line_of_the_index_that_is_true(tmp_path: Path, offset: int) -> None:
    each = Segment(0, None, tmp_path / segment.name(0))
    each.path.write_bytes(b"".join(framed(base) for base in range(8)))
    size = len(framed(0))
    for base in (2, 5):
        segment.add_entry(each, IndexEntry(base, base * size, base * 100))
    segment.add_entry(each, IndexEntry(6, 6 * size + 1, 600))  # names no frame
    each.index_path.write_bytes(each.index_path.read_bytes() + b"half a line")
    assert len(segment.entries(each)) == 3
    wanted = max(base for base in (0, 2, 5) if base <= offset) * size
    with open(each.path, "rb") as file:
        assert segment.locate(file.fileno(), each, 8 * size, offset=offset) == wanted
        assert segment.locate(file.fileno(), each, 8 * size, received=offset * 100 + 1) == wanted
    each.index_path.unlink()
    with open(each.path, "rb") as file:
        assert segment.locate(file.fileno(), each, 8 * size, offset=offset) == 0


def test_leftovers_that_begin_alike_are_superseded_all_of_them(tmp_path: Path) -> None:
    for name in (segment.name(0), segment.name(0, 1), segment.name(0, 2)):
        (tmp_path / name).touch()
    assert len(segment.superseded(tmp_path)) == 2
