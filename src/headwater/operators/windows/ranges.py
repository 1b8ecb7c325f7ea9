"""Partial results merged over many ranges at once, without doing the same work twice.

Neighbours are merged into pairs, pairs into fours, and so on; a range is then made of a few of those,
two of each size at the most. No aggregate has to know how to take something away again.

Invariant: partial results of different keys are never merged, not even where nobody would look.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.operators.event_time import NEVER
from headwater.operators.groups import Numbers
from headwater.operators.memory.entries import Entries, Merge


def over(entries: Entries, starts: Numbers, ends: Numbers, merge: Merge) -> pa.Table:
    """Merge entries over ranges of their places, none of them empty, each within one first number."""
    level, owner = entries.rows, entries.major
    query, low, high = np.arange(len(starts)), starts, ends
    tables: list[pa.Table] = [level.slice(0, 0)]
    queries: list[Numbers] = [query[:0]]
    while len(query):
        left, right = (low & 1) == 1, (high & 1) == 1
        right &= low + left < high
        tables += [level.take(pa.array(low[left])), level.take(pa.array(high[right] - 1))]
        queries += [query[left], query[right]]
        low, high = (low + left) >> 1, (high - right) >> 1
        more = low < high
        query, low, high = query[more], low[more], high[more]
        if len(query):
            level, owner = _halved(level, owner, merge)
    return _together(pa.concat_tables(tables).combine_chunks(), np.concatenate(queries), len(starts), merge)


def _halved(level: pa.Table, owner: Numbers, merge: Merge) -> tuple[pa.Table, Numbers]:
    """Merge pairs of neighbours; one that has no neighbour of its own key is on its own, and of no key."""
    place = np.arange(len(owner))
    partner = np.append(owner[1:], NEVER) == owner
    paired = np.repeat(partner[::2], 2)[: len(owner)]
    used = paired | (place % 2 == 0)
    rows = merge(level.take(pa.array(place[used])), place[used] >> 1, len(owner[::2]))
    return rows, np.where(partner[::2], owner[::2], -1 - place[::2])


def _together(rows: pa.Table, queries: Numbers, count: int, merge: Merge) -> pa.Table:
    if len(rows) > count:
        return merge(rows, queries, count)
    return rows.take(pa.array(np.argsort(queries)))
