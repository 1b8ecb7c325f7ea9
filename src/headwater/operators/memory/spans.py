"""What ``dedup`` remembers: for each key the times of its rows, in spans of time as long as ``within``.

Rows of a key that were passed on are at least ``within`` apart, so a span holds at most one of them,
and only the span before and the one after can hold another that is near. A row is decided by three
looks into dicts, made for all distinct keys of a span at once; and a span is forgotten as a whole,
without a look at its keys.

Invariant: a key has at most one time in a span.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from heapq import heappop, heappush
from itertools import repeat

import numpy as np

from headwater.operators.event_time import Times
from headwater.operators.groups import Keys, Numbers
from headwater.operators.operator import FOREVER, NEVER
from headwater.operators.order import stable

_Span = dict[Hashable, int]


class Spans:
    """Keys and times by span; the number of a time's span is the time divided by ``width``."""

    def __init__(self, width: int):
        self.width = width
        self._spans: dict[int, _Span] = {}
        self._oldest: list[int] = []

    def __len__(self) -> int:
        return sum(map(len, self._spans.values()))

    def add(self, keys: Keys, at: Times) -> None:
        """Remember a time of each key."""
        for number, places in _apart(at // self.width):
            span = self._spans.get(number)
            if span is None:
                span = self._spans[number] = {}
                heappush(self._oldest, number)
            span.update(zip(keys[places].tolist(), at[places].tolist(), strict=True))

    def free(self, keys: Keys, numbers: Numbers) -> tuple[Times, Times]:
        """Return for each key and span the first and the last time that is not near a remembered one.

        The first is after the last where no time of the span is.
        """
        first, last = np.full(len(keys), NEVER), np.full(len(keys), FOREVER)
        for number, places in _apart(numbers):
            some = keys[places].tolist()
            if before := self._spans.get(number - 1):
                first[places] = _times_of(before, some, NEVER) + self.width
            if after := self._spans.get(number + 1):
                last[places] = _times_of(after, some, FOREVER) - self.width
            if here := self._spans.get(number):
                first[places[_times_of(here, some, NEVER) > NEVER]] = FOREVER
        return first, last

    def drop(self, before: int) -> None:
        """Forget the spans that lie wholly before a time."""
        while (end := self.end()) is not None and end <= before:
            del self._spans[heappop(self._oldest)]

    def end(self) -> int | None:
        """Return the end of the oldest span: the first time after it."""
        return (self._oldest[0] + 1) * self.width if self._oldest else None


def _times_of(span: _Span, keys: list[Hashable], default: int) -> Times:
    return np.fromiter(map(span.get, keys, repeat(default)), np.int64, len(keys))


def _apart(numbers: Numbers) -> Iterator[tuple[int, Numbers]]:
    """Yield each distinct number with its places."""
    places = stable(numbers)
    cuts = np.flatnonzero(np.diff(numbers[places])) + 1
    for some in np.split(places, cuts) if len(places) else []:
        yield int(numbers[some[0]]), some
