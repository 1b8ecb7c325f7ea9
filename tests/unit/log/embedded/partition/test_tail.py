"""The tail of a partition: whole batches and how far producers have got, also from snapshots."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import DamagedLog
from headwater.log.embedded.partition import frame, head, segment, tail
from headwater.log.embedded.partition.frame import Flag, Header, Kind
from headwater.log.embedded.partition.segment import Segment
from headwater.log.embedded.partition.tail import FORGET_MICROS, ProducerState, Tail

PAYLOAD = b"payload"
ACTIVE = Segment(0, None, Path("nowhere"))


def header(offset: int, producer: str = "p", *, more: bool = False, epoch: int = 1) -> Header:
    return Header(
        Kind.DATA, Flag.MORE if more else 0, 0, 1, offset, offset, epoch, offset, offset, -1, offset * 10,
        0, 0, zlib.crc32(PAYLOAD), producer, len(PAYLOAD),
    )  # fmt: skip


def framed(each: Header) -> bytes:
    return frame.pack(each) + PAYLOAD


SIZE = len(framed(header(0)))


def caught_up(data: bytes, published: int = 0, told: bool = True) -> tuple[Tail, int]:
    """Return the tail of a file, and the bytes that are left of that."""
    file = os.memfd_create("segment")
    try:
        os.write(file, data)
        known = Tail(ACTIVE)
        known.catch_up(file, published, told)
        return known, os.fstat(file).st_size
    finally:
        os.close(file)


@given(st.lists(st.booleans(), max_size=8), st.integers(0, SIZE - 1))
def test_an_unfinished_batch_is_cut_back_to_the_last_whole_one(more: list[bool], torn: int) -> None:
    data = b"".join(framed(header(at, more=each)) for at, each in enumerate(more))
    whole = max((at + 1 for at, each in enumerate(more) if not each), default=0)
    known, left = caught_up(data + framed(header(len(more)))[:torn])
    assert (known.end, known.at, left) == (whole, whole * SIZE, whole * SIZE)
    assert known.producers == ({"p": ProducerState(1, whole - 1, (whole - 1) * 10)} if whole else {})


def test_damage_of_what_was_acknowledged_is_told_and_nothing_is_cut() -> None:
    data = bytearray(b"".join(framed(header(at)) for at in range(3)))
    data[SIZE + 5] ^= 0xFF
    with pytest.raises(DamagedLog, match=f"bytes {SIZE} to {2 * SIZE}"):
        caught_up(bytes(data), published=3 * SIZE)
    with pytest.raises(DamagedLog, match="lost its end"):
        caught_up(bytes(data), published=3 * SIZE + 1)
    with pytest.raises(DamagedLog):
        caught_up(bytes(data), told=False)
    assert caught_up(bytes(data), published=SIZE)[1] == SIZE


def test_a_payload_that_does_not_match_is_an_unfinished_append() -> None:
    torn = framed(header(1))[:-1] + b"?"
    assert caught_up(framed(header(0)) + torn)[1] == SIZE


def appended(directory: Path, base: int, *headers: Header) -> Tail:
    """Write a segment and return its tail."""
    active = Segment(base, None, directory / segment.name(base))
    known = tail.load(directory, active)
    with open(active.path, "ab") as file:
        for each in headers:
            file.write(framed(each))
            known.take(known.at, each)
    return known


def test_a_snapshot_is_carried_on_over_the_segments_behind_it(tmp_path: Path) -> None:
    appended(tmp_path, 0, header(0, "a"), header(1, "b")).save(tmp_path, sync=True)
    appended(tmp_path, 2, header(2, "a"), header(3, "c"))
    active = Segment(4, None, tmp_path / segment.name(4))
    wanted = {"a": ProducerState(1, 2, 20), "b": ProducerState(1, 1, 10), "c": ProducerState(1, 3, 30)}
    known = tail.load(tmp_path, active)
    assert (known.segment, known.at, known.end, known.producers) == (active, 0, 4, wanted)
    (tmp_path / tail.snapshot_name(0)).write_bytes(b"garbage")  # then all segments are walked
    assert tail.load(tmp_path, active).producers == wanted


def test_a_snapshot_that_was_not_synced_counts_until_the_machine_starts_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = appended(tmp_path, 0, header(0))
    known.producers["elsewhere"] = ProducerState(1, 7, 0)  # known from the snapshot alone
    known.save(tmp_path, sync=False)
    assert "elsewhere" in tail.load(tmp_path, known.segment).producers
    monkeypatch.setattr(head, "boot", lambda: bytes(16))
    assert tail.load(tmp_path, known.segment).producers == {}
    known.save(tmp_path, sync=True)
    monkeypatch.setattr(head, "boot", lambda: b"\1" * 16)
    assert "elsewhere" in tail.load(tmp_path, known.segment).producers


def test_a_snapshot_forgets_anonymous_producers_of_long_ago_and_older_snapshots_go(tmp_path: Path) -> None:
    known = appended(tmp_path, 0, header(0))
    known.received = FORGET_MICROS + 10
    known.producers = {
        "anonymous": ProducerState(0, 1, 9),
        "recent": ProducerState(0, 1, 10),
        "named": ProducerState(1, 1, 0),
    }
    known.save(tmp_path, sync=True)
    assert set(tail.load(tmp_path, known.segment).producers) == {"recent", "named"}
    tail.forget_snapshots(tmp_path, before=1)
    assert list(tmp_path.glob("*.producers")) == []
