"""Which rows of two tables meet, among those that a step may have changed the results of.

Each side has rows that stay, rows that were there before the step and rows that are there after it. A pair is
told where one of its rows has changed; a row without a partner where it has, or where the other side has
changed under its key.

Invariant: a pair has the same number before a step and after it, and no two pairs have one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.operators.groups import Flags, Numbers
from headwater.operators.memory.entries import arranged, opening, spread
from headwater.operators.memory.indexed_table import UNMET, IndexedRows
from headwater.operators.memory.key_hash import KeyHashes

_SMALL = 1 << 31
NOBODY = -1
"""The place of a partner that is missing; the key of a row that meets none."""


@dataclass(frozen=True)
class MeetingRows:
    """Rows, and the keys by which they meet others, as small numbers; NOBODY for one that meets none."""

    rows: IndexedRows
    keys: Numbers

    def only(self, chosen: Flags) -> MeetingRows:
        """Return the rows that are chosen."""
        return MeetingRows(self.rows.only(chosen), self.keys[chosen])


@dataclass(frozen=True)
class Moment:
    """Rows of one side before a step or after it, by their places among the candidates."""

    places: Numbers
    changed: Flags
    keys: Numbers
    ids: Numbers
    ages: Numbers
    touched: Numbers
    """The keys under which the step has changed something."""
    end: int
    """A number behind all ids, before and after."""


@dataclass(frozen=True)
class Candidates:
    """The rows of one side that results may be made of, as they were and as they are."""

    rows: pa.Table
    before: Moment
    after: Moment

    def take(self, places: Numbers) -> pa.Table:
        """Return rows by their places, nulls for those that are missing."""
        return self.rows.take(pa.array(places, mask=places == NOBODY))


@dataclass(frozen=True)
class JoinPairs:
    """Results: the places of their left and right rows, and a number for each."""

    left: Numbers
    right: Numbers
    numbers: Numbers

    def take(self, some: Flags) -> JoinPairs:
        """Return some of the pairs."""
        return JoinPairs(self.left[some], self.right[some], self.numbers[some])


def numbered(parts: Sequence[KeyHashes]) -> tuple[KeyHashes, list[Numbers]]:
    """Return keys by which rows meet, each once and in order, and the place of each given one among them."""
    high, low = (np.concatenate(halves) for halves in zip(*parts, strict=True))
    order = arranged(high, low)
    high, low = high[order], low[order]
    new = opening(high, low)
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.where(low == UNMET, NOBODY, np.cumsum(new) - 1)
    ends = np.cumsum([len(part.high) for part in parts])[:-1]
    return KeyHashes(high[new], low[new]), np.split(numbers, ends)


def candidates(found: MeetingRows, old: MeetingRows, put: MeetingRows) -> Candidates:
    """Return the rows of one side: those found under keys, and those that a step takes and puts."""
    old = old.only(old.rows.known)
    parts = [found.only(~np.isin(found.rows.ids, old.rows.ids)), old, put]
    keys = np.concatenate([part.keys for part in parts])
    ids = _small(np.concatenate([part.rows.ids for part in parts]))
    ages = np.concatenate([part.rows.ages for part in parts])
    stay, taken = len(parts[0].keys), len(parts[0].keys) + len(old.keys)
    places = np.arange(len(keys))
    touched, last = keys[stay:][keys[stay:] != NOBODY], int(ids.max(initial=0))
    moments = [
        Moment(some, some >= stay, keys[some], ids[some], ages[some], touched, last + 1)
        for some in (places[:taken], np.concatenate([places[:stay], places[taken:]]))
    ]
    return Candidates(pa.concat_tables([part.rows.rows for part in parts]).combine_chunks(), *moments)


def joined_pairs(left: Moment, right: Moment, how: str) -> JoinPairs:
    """Return the results of rows of both sides that a step may have changed, by the ages of their rows."""
    one, other = _pairs(left, right)
    if how in ("left", "full"):
        alone = _alone(left, right)
        one, other = np.append(one, alone), np.append(other, np.full(len(alone), NOBODY))
    if how in ("right", "full"):
        alone = _alone(right, left)
        one, other = np.append(one, np.full(len(alone), NOBODY)), np.append(other, alone)
    order = arranged(_of(left.ages, one), _of(right.ages, other))
    one, other = one[order], other[order]
    numbers = (_of(left.ids, one) + 1) * (right.end + 1) + _of(right.ids, other) + 1
    return JoinPairs(_of(left.places, one), _of(right.places, other), numbers)


def _pairs(left: Moment, right: Moment) -> tuple[Numbers, Numbers]:
    """Return rows that meet, at least one of each two changed."""
    mine, other = np.flatnonzero(left.changed), np.flatnonzero(right.changed)
    all_right, stays = np.arange(len(right.keys)), np.flatnonzero(~left.changed)
    onward, partner = _meet(left.keys, mine, right.keys, all_right)
    back, partners = _meet(left.keys, stays, right.keys, other)
    return np.concatenate([onward, back]), np.concatenate([partner, partners])


def _meet(left: Numbers, mine: Numbers, right: Numbers, others: Numbers) -> tuple[Numbers, Numbers]:
    others = others[np.argsort(right[others], kind="stable")]
    mine = mine[left[mine] != NOBODY]
    start, end = (np.searchsorted(right[others], left[mine], side) for side in ("left", "right"))
    return np.repeat(mine, end - start), others[spread(start, end)]


def _alone(rows: Moment, others: Moment) -> Numbers:
    """Return rows without a partner: of those changed, and of those under keys that others have changed."""
    some = np.flatnonzero(rows.changed | np.isin(rows.keys, others.touched))
    met = np.isin(rows.keys[some], others.keys) & (rows.keys[some] != NOBODY)
    alone: Numbers = some[~met]
    return alone


def _small(ids: Numbers) -> Numbers:
    """Return ids of which two are one number: as they are, or by their order where too many were given."""
    if ids.max(initial=0) < _SMALL:
        return ids
    small: Numbers = np.unique(ids, return_inverse=True)[1]
    return small


def _of(values: Numbers, places: Numbers) -> Numbers:
    """Return values at some places, and for those that are missing a number before all others."""
    if not len(values):
        return np.full(len(places), NOBODY)
    return np.where(places == NOBODY, NOBODY, values[places])
