"""The first entries of many first numbers, or the last, out of several runs that are merged.

Of each run a few are taken. What lies behind the last that was taken of one of them may be incomplete, as
that one may have more: so it is left out.

Invariant: an entry that is returned is merged of all its parts, and none that lies before it is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headwater.operators.event_time import FOREVER, NEVER
from headwater.operators.groups import Flags, Numbers
from headwater.operators.memory.entries import Entries, bisect, spread


@dataclass(frozen=True)
class Edge:
    """What is asked for: first numbers, each once and in order, and how many entries of each run."""

    major: Numbers
    bound: Numbers
    """The second number to begin with."""
    count: int
    last: bool
    """Whether to go from the bound downwards."""


@dataclass(frozen=True)
class EdgePieces:
    """What was taken of each run, how far that is complete, and of which first numbers it is all."""

    asked: Edge
    pieces: list[Entries]
    reach: Numbers
    whole: Flags

    def reached(self, entries: Entries) -> Flags:
        """Tell which merged entries are complete."""
        reach = self.reach[np.searchsorted(self.asked.major, entries.major)]
        return entries.minor >= reach if self.asked.last else entries.minor <= reach


def edge_of(parts: Sequence[Entries], asked: Edge) -> EdgePieces:
    """Take a few entries of each part."""
    count = len(asked.major)
    reach, whole = np.full(count, NEVER if asked.last else FOREVER), np.ones(count, np.bool_)
    pieces = []
    for part in parts:
        low = int(np.searchsorted(asked.major, part.major[0]))
        high = int(np.searchsorted(asked.major, part.major[-1], side="right"))
        if low < high:
            pieces.append(_piece(part, asked, slice(low, high), reach, whole))
    return EdgePieces(asked, [piece for piece in pieces if len(piece)], reach, whole)


def _piece(part: Entries, asked: Edge, some: slice, reach: Numbers, whole: Flags) -> Entries:
    major, bound = asked.major[some], asked.bound[some]
    low, high = (np.searchsorted(part.major, major, side) for side in ("left", "right"))
    if asked.last:
        behind = np.minimum(bound, FOREVER - 1) + 1  # there is no number behind the greatest one
        high = np.where(bound == FOREVER, high, bisect(part.minor, low, high, behind))
        low, start = np.maximum(low, high - asked.count), low
        more = low > start
        reach[some][more] = np.maximum(reach[some][more], part.minor[low[more]])
    else:
        low = bisect(part.minor, low, high, bound)
        high, end = np.minimum(high, low + asked.count), high
        more = high < end
        reach[some][more] = np.minimum(reach[some][more], part.minor[high[more] - 1])
    whole[some] &= ~more
    return part.take(spread(low, high))
