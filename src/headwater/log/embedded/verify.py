"""Verification: every checksum, every offset, and the sequence of every producer.

Each frame names its producer's previous sequence in the partition, so a frame that is missing or
stored twice breaks the chain. Invariant: verification reads, and never changes anything.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow.compute as pc

from headwater.errors import DamagedLog
from headwater.log.embedded import archive
from headwater.log.embedded.archive import Archived
from headwater.log.embedded.partition import reader, segment
from headwater.log.embedded.partition.frame import Header, Kind
from headwater.log.embedded.partition.head import Head
from headwater.log.embedded.partition.segment import Damage, Segment
from headwater.log.report import Finding, Verification


class _Chain(NamedTuple):
    """What the frames walked so far say must come next."""

    offset: int | None
    producers: dict[str, tuple[int, int]]


class _Checked:
    """What has been checked of a partition so far."""

    def __init__(self, topic: str, number: int):
        self._topic, self._number = topic, number
        self.total = Verification()

    def count(self, rows: int, size: int) -> None:
        """Count a batch that is right."""
        self.total += Verification(1, rows, size)

    def wrong(self, *problems: str) -> None:
        """Note what is not."""
        found = tuple(Finding(self._topic, self._number, problem) for problem in problems)
        self.total += Verification(findings=found)


def verify_partition(
    topic: str, number: int, directory: Path, archived: Sequence[Archived] = ()
) -> Verification:
    """Check everything that is published in one partition, and its archive."""
    checked = _Checked(topic, number)
    for each in archived:
        _check_archived(checked, each)
    published = reader.published(directory)
    try:
        if published is None:
            checked.wrong(f'file "{directory / "head"}" cannot be read')
            published = reader.worked_out(directory)
        _check_segments(checked, directory, published, archived)
    except DamagedLog as error:
        checked.wrong(error.message)
    return checked.total


def _check_archived(checked: _Checked, archived: Archived) -> None:
    expected = archived.base
    try:
        for batch in archive.batches(archived):
            offsets = batch.column("_offset")
            first, last = offsets[0].as_py(), offsets[-1].as_py()
            rising = pc.all(pc.greater(offsets[1:], offsets[:-1]), min_count=0).as_py()
            if first < expected or last >= archived.end or not rising:
                checked.wrong(f'file "{archived.path}": offsets {first} to {last} are out of order')
            checked.count(len(batch), batch.nbytes)
            expected = last + 1
    except DamagedLog as error:
        checked.wrong(f"{error.message}; {error.detail}")


def _check_segments(
    checked: _Checked, directory: Path, published: Head, archived: Sequence[Archived]
) -> None:
    chain, after = _Chain(None, {}), None
    segments = [s for s in segment.listing(directory) if s.base <= published.segment]
    for each in segments:
        if after is not None and after < each.base:
            checked.wrong(*_gap(directory, after, each.base, archived))
            chain = _Chain(None, {})
        chain = _check_frames(checked, each, published, chain)
        after = each.end if each.end is not None else chain.offset
    if after is not None and after < published.segment:
        checked.wrong(*_gap(directory, after, published.segment, archived))
    if published.size and not any(s.base == published.segment and s.end is None for s in segments):
        checked.wrong(*_gap(directory, published.segment, published.end, archived))
    elif after is not None and published.segment < after < published.end:
        checked.wrong(f"offsets {after} to {published.end - 1} are missing")


def _check_frames(checked: _Checked, log_segment: Segment, published: Head, chain: _Chain) -> _Chain:
    for found in _frames(log_segment, published):
        if isinstance(found, str):
            checked.wrong(found)
            chain = _Chain(None, {})
        else:
            checked.wrong(*_problems(found, chain, log_segment))
            checked.count(found.rows, found.size())
            chain = _follow(chain, found)
    return chain


def _gap(directory: Path, start: int, stop: int, archived: Sequence[Archived]) -> Iterator[str]:
    """Yield what is wrong with offsets that no segment has, if retention or compaction did not do it."""
    now = segment.listing(directory)
    let_go = bool(now) and now[0].base >= stop
    moved = any(start <= s.base < stop or s.base <= start < (s.end or 0) for s in now)
    if not (let_go or moved or archive.covers(archived, start, stop)):
        yield f'offsets {start} to {stop - 1} are missing: no file in "{directory}" has them'


def _frames(log_segment: Segment, published: Head) -> Iterator[Header | str]:
    """Yield the headers of a segment, or what is wrong where there is none."""
    with open(log_segment.path, "rb") as file:
        fd = file.fileno()
        size = os.fstat(fd).st_size
        stop = published.size if log_segment.base == published.segment else size
        if size < stop:
            lost = f"{stop} bytes were acknowledged, {size} are there"
            yield f'file "{log_segment.path}" has lost its end: {lost}'
        for at, found in segment.walk(fd, 0, min(stop, size)):
            if isinstance(found, Damage):
                yield f'file "{log_segment.path}", bytes {found.at} to {found.until}: no readable batch'
                continue
            if segment.payload(fd, at, found) is None:
                yield (
                    f'file "{log_segment.path}", bytes {at} to {at + found.size()}: wrong checksum; '
                    f"offsets {found.base} to {found.last} cannot be read"
                )
            else:
                yield found


def _problems(header: Header, chain: _Chain, where: Segment) -> Iterator[str]:
    expected = chain.offset
    gap = expected is not None and header.base != expected
    if gap and (header.kind != Kind.COMPACTED or header.base < (expected or 0)):
        yield f'file "{where.path}": offset {header.base} follows {(expected or 0) - 1}'
    if header.kind == Kind.COMPACTED or header.producer not in chain.producers:
        return
    epoch, last = chain.producers[header.producer]
    if header.epoch < epoch:
        yield f'producer "{header.producer}": epoch {header.epoch} after {epoch}, at offset {header.base}'
    if header.previous_sequence != last or (header.rows and header.first_sequence <= last):
        yield (
            f'producer "{header.producer}": sequence {header.first_sequence} after {last}, '
            f"where {header.previous_sequence} should have been last, at offset {header.base}"
        )


def _follow(chain: _Chain, header: Header) -> _Chain:
    if header.kind == Kind.COMPACTED:
        return _Chain(None, {})
    last = header.last_sequence if header.kind == Kind.DATA else header.previous_sequence
    chain.producers[header.producer] = (header.epoch, last)
    return _Chain(header.last + 1, chain.producers)
