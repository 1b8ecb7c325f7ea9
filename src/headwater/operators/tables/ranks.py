"""The least and the greatest values of each group, as rows enter groups and leave them.

All values of a group lie in order in a container. Its few least and greatest ones lie in the group's row too,
so that a step looks into the container only where so many of those have left that too few are at hand.

Invariant: what lies at an end of a group's row are its outermost values, as many as are asked for at least,
or all that it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.operators.aggregates.by_group import added, lengths, listed, lists_of, ranks_within
from headwater.operators.columns import one_array
from headwater.operators.groups import Flags, Numbers
from headwater.operators.memory.entries import arranged, opening
from headwater.operators.memory.ranked_values import CountedValues, RankedValues
from headwater.operators.memory.sorted_runs import SortedRuns
from headwater.operators.memory.value_digits import as_bytes, has_one_digit, single_digits
from headwater.operators.tables.tallies import Ends, ValueChanges

_SPARE = 4
"""How many more values are at hand than are asked for."""


@dataclass(frozen=True)
class _Net:
    """Values of groups, their order as numbers, where each is, and how many more or fewer there are."""

    of: Numbers
    keys: Numbers
    where: Numbers
    counts: Numbers

    def take(self, some: Numbers | Flags) -> _Net:
        return _Net(self.of[some], self.keys[some], self.where[some], self.counts[some])

    def summed(self) -> _Net:
        """Return each value of a group once, in the order of groups, from the greatest on."""
        net = self.take(arranged(self.of, ~self.keys))
        new = opening(net.of, net.keys)
        counts = added(net.counts, np.cumsum(new) - 1, int(new.sum()))
        return _Net(net.of[new], net.keys[new], net.where[new], counts)


class Ranks:
    """The values of each group in their order."""

    def __init__(self, kind: pa.DataType, ends: Ends):
        self.kind, self._ends = kind, ends
        self._values = RankedValues(kind)
        names = [name for name, need in zip(Ends._fields, ends, strict=True) if need]
        self.fields = [pa.field("count", pa.int64()), *(pa.field(name, pa.list_(kind)) for name in names)]

    def containers(self) -> dict[str, SortedRuns]:
        """Return all values."""
        return {"values": self._values.runs}

    def counters(self) -> dict[str, tuple[object, str]]:
        """Return how many nodes they have."""
        return {"nodes": (self._values, "given")}

    def changed(self, columns: Sequence[pa.Array], changes: ValueChanges) -> list[pa.Array]:
        """Change the values, and what is at each end."""
        changes = changes.present()
        ends = columns[1:]
        values = pa.concat_arrays([changes.values, *(end.flatten() for end in ends)])
        keys, count = _keys(values), len(changes.of)
        net = _Net(changes.of, keys[:count], np.arange(count), changes.signs).summed()
        net = net.take(net.counts != 0)
        self._values.change(CountedValues(changes.ids[net.of], values.take(pa.array(net.where)), net.counts))
        before = columns[0].to_numpy()
        after = before + added(changes.signs, changes.of, len(before))
        made = [pa.array(after)]
        for field, end in zip(self.fields[1:], ends, strict=True):
            held = _Held(end, keys[count : count + len(end.flatten())], count, before, after)
            made.append(self._end(field.name, held, net, values, changes.ids))
            count += len(held.keys)
        return made

    def least(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Return the least value of each group."""
        return self._first(columns[1])

    def most(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Return the greatest value of each group."""
        return self._first(columns[-1])

    def greatest(self, columns: Sequence[pa.Array], count: int) -> pa.Array:
        """Return the greatest values of each group, the greatest first."""
        lists = columns[-1]
        of, flat = lists_of(lists), lists.flatten()
        few = ranks_within(of) < count
        return listed(flat.filter(pa.array(few)), of[few], len(lists))

    def _first(self, lists: pa.Array) -> pa.Array:
        size = lengths(lists)
        return lists.flatten().take(pa.array(np.cumsum(size) - size, mask=size == 0))

    def _end(self, name: str, held: _Held, net: _Net, values: pa.Array, ids: Numbers) -> pa.Array:
        """Return what is at an end of each group after a change."""
        need, last = getattr(self._ends, name), name == "most"
        near = held.near(net, last)
        kept = near.take(near.counts > 0)
        counts = np.minimum(kept.counts, need + _SPARE)
        of, where = np.repeat(kept.of, counts), np.repeat(kept.where, counts)
        few = ranks_within(of) < need + _SPARE
        of, where = of[few], where[few]
        lacks = np.bincount(of, minlength=len(ids)) < np.minimum(need, held.after)
        if not lacks.any():
            return listed(values.take(pa.array(where)), of, len(ids))
        some = np.flatnonzero(lacks)
        mine, found = self._found(some, near, values, ids, need + _SPARE, last)
        rest = ~lacks[of]
        every = np.concatenate([of[rest], mine])
        order = np.argsort(every, kind="stable")
        both = pa.concat_arrays([values.take(pa.array(where[rest])), found])
        return listed(both.take(pa.array(order)), every[order], len(ids))

    def _found(
        self, groups: Numbers, near: _Net, values: pa.Array, ids: Numbers, need: int, last: bool
    ) -> tuple[Numbers, pa.Array]:
        """Return what is at an end of groups, as the container has it: no further out than what was known."""
        first = near.where[np.searchsorted(near.of, groups)]
        order = np.argsort(ids[groups])
        bounds = values.take(pa.array(first[order]))
        of, found = self._values.edge(ids[groups][order], bounds, need, last)
        return groups[order][of], found


@dataclass(frozen=True)
class _Held:
    """What was at an end of each group, and how many values each had, and has."""

    lists: pa.Array
    keys: Numbers
    start: int
    before: Numbers
    after: Numbers

    def near(self, net: _Net, last: bool) -> _Net:
        """Return what was at the end, and changes that are as far out: each value once, outermost first."""
        of, size = lists_of(self.lists), lengths(self.lists)
        keys, mine = (self.keys, net.keys) if last else (~self.keys, ~net.keys)
        inmost = np.zeros(len(size), np.int64)
        inmost[size > 0] = keys[(np.cumsum(size) - 1)[size > 0]]
        some = (size == self.before)[net.of] | (mine >= inmost[net.of])
        where = np.arange(self.start, self.start + len(keys))
        parts = [(of, keys, where, np.ones(len(of), np.int64))]
        parts.append((net.of[some], mine[some], net.where[some], net.counts[some]))
        return _Net(*(np.concatenate(each) for each in zip(*parts, strict=True))).summed()


def _keys(values: pa.Array) -> Numbers:
    """Return values as numbers in their order."""
    if has_one_digit(values.type):
        return single_digits(values)
    ranks = pc.rank(as_bytes(values), sort_keys="ascending", tiebreaker="dense")
    numbers: Numbers = one_array(ranks).to_numpy().astype(np.int64)
    return numbers
