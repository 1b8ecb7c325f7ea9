"""Offsets by time of receipt, and the times of a partition's ends.

Times of receipt never go back within a partition, so a time is found by its segment, the sparse
index, and a short walk over headers.
"""

from __future__ import annotations

import os
from pathlib import Path

from headwater.log.embedded import segment
from headwater.log.embedded.head import Head
from headwater.log.embedded.segment import Damage, Segment


def first_received(each: Segment) -> int | None:
    """Return when the first record of a segment was received."""
    with open(each.path, "rb") as file:
        for _, found in segment.walk(file.fileno(), 0, os.fstat(file.fileno()).st_size):
            if not isinstance(found, Damage) and found.rows:
                return found.received
    return None


def last_received(each: Segment) -> int | None:
    """Return when the last record of a segment was received."""
    newest = None
    with open(each.path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = segment.locate(file.fileno(), each, size, offset=1 << 62)
        for _, found in segment.walk(file.fileno(), start, size):
            if not isinstance(found, Damage) and found.rows:
                newest = found.received
    return newest


def offset_at(directory: Path, published: Head, received: int) -> int:
    """Return the offset of the first record received at a time or later."""
    if received > published.received:
        return published.end
    candidates: list[Segment] = []
    for each in reversed(segment.listing(directory)):  # times near the end are asked for most
        candidates.insert(0, each)
        if (first_received(each) or received) < received:
            break
    for each in candidates:
        with open(each.path, "rb") as file:
            size = published.size if each.base == published.segment else os.fstat(file.fileno()).st_size
            place = segment.locate(file.fileno(), each, size, received=received)
            for _, found in segment.walk(file.fileno(), place, size):
                if not isinstance(found, Damage) and found.rows and found.received >= received:
                    return found.base
    return published.end


def received_at(directory: Path, published: Head, offset: int) -> int | None:
    """Return when the record at an offset, or the next one after it, was received."""
    segments = segment.listing(directory)
    covering = [s for s in segments if s.base <= offset][-1:]
    for each in covering + [s for s in segments if s.base > offset]:
        with open(each.path, "rb") as file:
            size = published.size if each.base == published.segment else os.fstat(file.fileno()).st_size
            place = segment.locate(file.fileno(), each, size, offset=offset)
            for _, found in segment.walk(file.fileno(), place, size):
                if not isinstance(found, Damage) and found.rows and found.last >= offset:
                    return found.received
    return None
