"""How often each value is in each group, in the order of values: the least and the greatest are at hand.

A value that is one digit lies under its group at that digit. Of longer ones the group has a tree: under a
node and a digit lies the one value that has it there, or the node of all that have, which are told apart by
their next digit. So a value is as deep as it takes to tell it from others.

Invariant: what is found depends on the values that are there, and not on those that were.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.operators.aggregates.by_group import added, ranks_within
from headwater.operators.columns import one_array
from headwater.operators.event_time import FOREVER, NEVER
from headwater.operators.groups import Flags, Numbers
from headwater.operators.memory.edges import Edge
from headwater.operators.memory.entries import Entries, arranged, newest, opening
from headwater.operators.memory.run import positions
from headwater.operators.memory.slots import by_major, next_numbers, slots_of_numbers
from headwater.operators.memory.sorted_runs import SortedRuns
from headwater.operators.memory.value_digits import (
    as_bytes,
    digit,
    from_bytes,
    from_single_digits,
    has_one_digit,
    single_digits,
)

_COUNT = pa.schema([("count", pa.int64())])
_NODE = pa.schema([*_COUNT, ("child", pa.int64()), ("value", pa.binary())])
_LEAF = 0
"""The child of a value that is alone; nodes below groups have numbers below 0."""
_MORE = 4


@dataclass(frozen=True)
class CountedValues:
    """Values of groups, each with how often it is there, or how much oftener than before."""

    groups: Numbers
    values: pa.Array
    counts: Numbers

    def take(self, indices: Numbers) -> CountedValues:
        """Return some of the values."""
        return CountedValues(self.groups[indices], self.values.take(pa.array(indices)), self.counts[indices])


@dataclass(frozen=True)
class _Items:
    """Entries of nodes: which of the groups asked for each is of, its digit, and its row."""

    of: Numbers
    digits: Numbers
    rows: pa.Table

    @property
    def counts(self) -> Numbers:
        return _numbers(self.rows, "count")

    @property
    def children(self) -> Numbers:
        return _numbers(self.rows, "child")

    def take(self, indices: Numbers) -> _Items:
        return _Items(self.of[indices], self.digits[indices], self.rows.take(pa.array(indices)))

    def enough(self, need: int) -> _Items:
        """Leave out what comes behind as many values as are needed."""
        counts = np.minimum(self.counts, need)
        before = np.cumsum(counts) - counts
        starts = np.flatnonzero(np.diff(self.of, prepend=-1))
        first = np.repeat(before[starts], np.diff(np.append(starts, len(before))))
        return self.take(np.flatnonzero(before - first < need))


class RankedValues:
    """Values by group, which is a number that was given for a slot."""

    def __init__(self, kind: pa.DataType):
        self._kind, self._is_plain = kind, has_one_digit(kind)
        self._none = (_COUNT if self._is_plain else _NODE).empty_table()
        self.runs = SortedRuns(self._none, _merge, _is_gone, slots=by_major)
        self.given = 0
        """How many nodes were given a number so far."""

    def change(self, changes: CountedValues) -> None:
        """Add values, and take out those whose count is below 0; each of a group once, none of them null."""
        if not len(changes.counts):
            return
        if self._is_plain:
            rows = pa.table([changes.counts], schema=_COUNT)
            self.runs.add(Entries(changes.groups, single_digits(changes.values), rows))
            return
        place, changes = 0, CountedValues(changes.groups, as_bytes(changes.values), changes.counts)
        while len(changes.counts):
            changes = self._change_nodes(changes, digit(changes.values, place))
            place += 1

    def edge(self, groups: Numbers, bounds: pa.Array, need: int, last: bool) -> tuple[Numbers, pa.Array]:
        """Return the least values of groups, or the greatest, outermost first, with the group of each.

        Groups are given once and in order, and of each a value beyond which it has none.
        """
        digits = single_digits(bounds) if self._is_plain else digit(as_bytes(bounds), 0)
        items = self._items(groups, digits, need, last)
        while not self._is_plain and (inner := items.children != _LEAF).any():
            items = self._expanded(items, inner, need, last)
        counts = np.minimum(items.counts, need)
        of, where = np.repeat(items.of, counts), np.repeat(np.arange(len(counts)), counts)
        few = ranks_within(of) < need
        return of[few], self._values(items).take(pa.array(where[few]))

    def _values(self, items: _Items) -> pa.Array:
        if self._is_plain:
            return from_single_digits(items.digits, self._kind)
        return from_bytes(one_array(items.rows.column("value")), self._kind)

    def _items(self, nodes: Numbers, bounds: Numbers, need: int, last: bool) -> _Items:
        """Return entries of nodes, given in order, from a digit on, until there are as many as are needed."""
        left, count = np.arange(len(nodes)), need + _MORE
        found = [_Items(left[:0], bounds[:0], self._none)]
        while len(left):
            entries, whole = self.runs.edge(Edge(nodes[left], bounds[left], count, last))
            entries = entries.take(np.flatnonzero(_numbers(entries.rows, "count") > 0))
            of = np.searchsorted(nodes[left], entries.major)
            have = added(np.minimum(_numbers(entries.rows, "count"), need), of, len(left))
            done = whole | (have >= need)
            some = np.flatnonzero(done[of])
            found.append(_Items(left[of], entries.minor, entries.rows).take(some))
            left, count = left[~done], _MORE * count
        return _in_order(found, last).enough(need)

    def _expanded(self, items: _Items, inner: Flags, need: int, last: bool) -> _Items:
        """Return items with what is below a node in place of it."""
        places = np.flatnonzero(inner)
        nodes = items.children[places]
        order = np.argsort(nodes)
        bounds = np.full(len(nodes), FOREVER if last else NEVER)
        below = self._items(nodes[order], bounds, need, last)
        place = np.concatenate([np.flatnonzero(~inner), places[order][below.of]])
        kept = items.take(np.flatnonzero(~inner))
        together = _Items(
            items.of[place],
            np.concatenate([kept.digits, below.digits]),
            pa.concat_tables([kept.rows, below.rows]).combine_chunks(),
        )
        return together.take(np.argsort(place, kind="stable")).enough(need)

    def _change_nodes(self, changes: CountedValues, digits: Numbers) -> CountedValues:
        """Change what is under nodes and digits; return what is to be changed below."""
        order = arranged(changes.groups, digits)
        changes, digits = changes.take(order), digits[order]
        new = opening(changes.groups, digits)
        of, first = np.cumsum(new) - 1, np.flatnonzero(new)
        nodes, digits = changes.groups[first], digits[first]
        held = self._held(nodes, digits)
        same = _equal(changes.values, held.values.take(pa.array(of))) & (held.counts[of] > 0)
        alone = np.bincount(of) == 1
        is_leaf = (held.groups == _LEAF) & alone & ((held.counts == 0) | same[first])
        children = np.where(is_leaf, _LEAF, held.groups)
        split = np.flatnonzero(~is_leaf & (held.groups == _LEAF))
        children[split] = ~next_numbers(self.given, slots_of_numbers(nodes[split]))
        self.given += len(split)
        values = changes.values.take(pa.array(first, mask=~is_leaf))
        rows = pa.table([added(changes.counts, of, len(first)), children, values], schema=_NODE)
        self.runs.add(Entries(nodes, digits, rows))
        down = np.zeros(len(first), np.bool_)
        down[split] = held.counts[split] > 0
        return _below(changes, of, children, held, down, same)

    def _held(self, nodes: Numbers, digits: Numbers) -> CountedValues:
        """Return what is under nodes and digits, given in order: its child, its value and its count."""
        found = self.runs.within(nodes, digits, digits + 1)
        place = positions(Entries(nodes, digits, found.rows), found.major, found.minor)
        where = np.full(len(nodes), -1)
        where[place] = np.arange(len(place))
        rows = found.rows.take(pa.array(where, mask=where < 0))
        return CountedValues(
            _numbers(rows, "child"), one_array(rows.column("value")), _numbers(rows, "count")
        )


def _below(
    changes: CountedValues, of: Numbers, children: Numbers, held: CountedValues, down: Flags, same: Flags
) -> CountedValues:
    """Return what changes under the children of nodes, with the values that were alone there before."""
    counts = np.where(down[of] & same, changes.counts + held.counts[of], changes.counts)
    goes = np.flatnonzero((children[of] != _LEAF) & (counts != 0))
    changed = CountedValues(children[of], changes.values, counts).take(goes)
    down[of[same]] = False
    rest = CountedValues(children, held.values, held.counts).take(np.flatnonzero(down))
    return CountedValues(
        np.concatenate([changed.groups, rest.groups]),
        pa.concat_arrays([changed.values, rest.values]),
        np.concatenate([changed.counts, rest.counts]),
    )


def _in_order(found: list[_Items], last: bool) -> _Items:
    """Return items of several groups, those of each from one end to the other."""
    of, digits = (np.concatenate([getattr(each, name) for each in found]) for name in ("of", "digits"))
    rows = pa.concat_tables([each.rows for each in found]).combine_chunks()
    order = arranged(of, ~digits if last else digits)
    return _Items(of, digits, rows).take(order)


def _equal(values: pa.Array, others: pa.Array) -> Flags:
    flags: Flags = pc.equal(values, others).fill_null(False).to_numpy(zero_copy_only=False)
    return flags


def _numbers(rows: pa.Table, name: str) -> Numbers:
    numbers: Numbers = rows.column(name).fill_null(0).to_numpy()
    return numbers


def _merge(rows: pa.Table, groups: Numbers, count: int) -> pa.Table:
    """Add counts; of what else there is, the newest counts."""
    sums = pa.array(added(rows.column("count").to_numpy(), groups, count))
    if rows.num_columns == 1:
        return pa.table([sums], schema=_COUNT)
    return newest(rows, groups, count).set_column(0, _NODE.field(0), sums)


def _is_gone(rows: pa.Table) -> Flags:
    gone: Flags = rows.column("count").to_numpy() == 0
    return gone
