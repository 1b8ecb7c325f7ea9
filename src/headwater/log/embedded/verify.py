"""Verification: every checksum, every offset, and the sequence of every producer.

Each frame names its producer's previous sequence in the partition, so a frame that is missing or
stored twice breaks the chain. Invariant: verification reads, and never changes anything.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from headwater.log.embedded import head, segment
from headwater.log.embedded.frame import Header, Kind
from headwater.log.embedded.head import Head
from headwater.log.embedded.segment import Damage, Segment
from headwater.log.interface import Finding, Verification


class _Chain(NamedTuple):
    """What the frames walked so far say must come next."""

    offset: int | None
    producers: dict[str, tuple[int, int]]


def verify_partition(topic: str, number: int, directory: Path) -> Verification:
    """Check everything that is published in one partition."""
    with open(directory / "head", "rb") as file:
        written = head.read(file.fileno())
    if written is None:
        return Verification()
    published = written.head
    batches = records = size = 0
    findings: list[Finding] = []
    chain = _Chain(None, {})
    for each in segment.listing(directory):
        for found in _frames(each, published):
            if isinstance(found, str):
                findings.append(Finding(topic, number, found))
                chain = _Chain(None, {})
                continue
            findings += [Finding(topic, number, p) for p in _problems(found, chain, each)]
            chain = _follow(chain, found)
            batches, records, size = batches + 1, records + found.rows, size + found.size()
    if chain.offset is not None and chain.offset < published.end and published.segment < chain.offset:
        findings.append(Finding(topic, number, f"offsets {chain.offset} to {published.end - 1} are missing"))
    return Verification(batches, records, size, tuple(findings))


def _frames(each: Segment, published: Head) -> Iterator[Header | str]:
    """Yield the headers of a segment, or what is wrong where there is none."""
    with open(each.path, "rb") as file:
        fd = file.fileno()
        size = os.fstat(fd).st_size
        stop = published.size if each.base == published.segment else size
        if size < stop:
            yield f'file "{each.path}" has lost its end: {stop} bytes were acknowledged, {size} are there'
        for at, found in segment.walk(fd, 0, min(stop, size)):
            if isinstance(found, Damage):
                yield f'file "{each.path}", bytes {found.at} to {found.until}: no readable batch'
                continue
            payload = os.pread(fd, found.payload_size, at + found.size() - found.payload_size)
            if zlib.crc32(payload) != found.payload_checksum:
                yield (
                    f'file "{each.path}", bytes {at} to {at + found.size()}: wrong checksum; '
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
