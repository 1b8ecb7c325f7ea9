"""The marks behind the last record of a partition, of which there may be many where nothing else comes.

Who keeps time asks for them several times a second, and they lie in the active segment one behind the other.
So it is remembered how far they were walked, and of each producer what its marks tell together. Invariant:
what is told is what all marks behind the last record tell, however often it was asked for before.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

from headwater.log.appended_range import AppendedRange
from headwater.log.embedded.catalog import StoredTopic
from headwater.log.embedded.partition import segment
from headwater.log.embedded.partition.frame import Header, Kind
from headwater.log.embedded.partition.head import Head
from headwater.log.embedded.partition.segment import Segment


@dataclass
class _Walked:
    """How far an active segment was walked, behind its last record."""

    segment: int
    end: int
    at: int | None = None
    """Where the next frame begins; None before the first walk."""
    marks: dict[str, AppendedRange] = field(default_factory=dict)


class EndMarks:
    """Remembers the marks at the ends of a log's partitions."""

    def __init__(self) -> None:
        self._walked: dict[tuple[str, int], _Walked] = {}

    def since(self, stored: StoredTopic, number: int, published: Head) -> Iterator[AppendedRange]:
        """Yield one mark of each producer that has left any behind the last record."""
        if not published.size:
            return
        known = self._known(stored.id, number, published)
        if known.at != published.size:
            path = stored.partition(number) / segment.name(published.segment)
            with suppress(FileNotFoundError):  # who reads records there is told of it
                _walk(known, Segment(published.segment, None, path), number, published)
        yield from sorted(known.marks.values(), key=lambda each: each.began)

    def _known(self, topic: str, number: int, published: Head) -> _Walked:
        """Return what is known of a partition as it is now: of another end, nothing is."""
        known = self._walked.get((topic, number))
        here = known is not None and (known.segment, known.end) == (published.segment, published.end)
        if known is None or not here or (known.at or 0) > published.size:
            known = self._walked[topic, number] = _Walked(published.segment, published.end)
        return known


def _walk(known: _Walked, active: Segment, number: int, published: Head) -> None:
    with open(active.path, "rb") as file:
        fd, size = file.fileno(), published.size
        start = segment.locate(fd, active, size, offset=published.end) if known.at is None else known.at
        for _, found in segment.walk(fd, start, size):
            if isinstance(found, Header) and found.kind == Kind.MARK and found.base >= published.end:
                mark = AppendedRange(
                    number, found.base, found.base, found.producer, found.received, found.newest, True
                )
                known.marks[found.producer] = _both(known.marks.get(found.producer), mark)
        known.at = size


def _both(before: AppendedRange | None, mark: AppendedRange) -> AppendedRange:
    """Return a mark that tells what two of one producer tell, heard from the first one on."""
    if before is None:
        return mark
    times = [each.newest for each in (before, mark) if each.newest is not None]
    return replace(mark, newest=max(times), first=before.began)
