"""A table made of another one: its rows grouped, and aggregates of each group that stay right.

A deletion tells the primary key alone, and a row may move to another group. So rows can be spread over
buckets only by those columns of the group that are in the primary key; where there are none, all rows
are in one bucket, which finds the old row of a key and takes it out of its group.

Invariant: after a step, the last result of each group is what aggregating the table as it is then gives,
and groups whose last result is a deletion have no rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from headwater.errors import UsageError
from headwater.operators.columns import check_columns
from headwater.operators.groups import Flags, Numbers, group
from headwater.operators.memory.indexed_table import Delta, IndexedTable
from headwater.operators.memory.numbered_rows import NOWHERE
from headwater.operators.memory.slots import Slots
from headwater.operators.operator import Operator, Step
from headwater.operators.order import order
from headwater.operators.table_changes import check_table, identical, last
from headwater.operators.tables.retracting import Retractable, Tally
from headwater.record import DELETED

WHAT = "tables.group"
Tallies = dict[tuple[type[Any], str], Any]


@dataclass(frozen=True)
class Grouped:
    """The rows of a table, the numbers of its groups, and what is known of each."""

    output: pa.Schema
    groups: Slots
    rows: IndexedTable
    tallies: Tallies


class _GroupChange(NamedTuple):
    """What a step changes: where that is in its rows, which slots, and the old and new rows."""

    indices: Numbers
    delta: Delta
    old: pa.Table
    new: pa.Table

    @property
    def old_groups(self) -> Numbers:
        """The groups that the old rows were in."""
        return self.delta.before[self.delta.was]

    @property
    def new_groups(self) -> Numbers:
        """The groups that the new rows are in."""
        return self.delta.after[self.delta.is_]


@dataclass(frozen=True)
class TableGroup(Operator[Grouped]):
    """Aggregate the rows of a table by group, and tell each group that is new, changed or gone.

    Of several changes of a key in one step the last one counts. A step emits a group once at the most,
    in the order of the groups' columns; one that has lost its last row with ``_deleted`` and those
    columns alone. Nothing is late. The state is the columns needed of each row as it is now, and the
    values of the groups; a restart finds them so.

    >>> from headwater.operators.tables import retracting as agg
    >>> from headwater.operators.event_time import NEVER
    >>> orders = pa.table({"id": [1, 2], "shop": ["a", "a"], "cents": [5, 7], "_deleted": [False, False]})
    >>> total = TableGroup(("id",), ("shop",), (("cents", agg.sum("cents")),))
    >>> total.step(total.initial_state(orders.schema), orders, watermark=NEVER).out.to_pylist()
    [{'shop': 'a', 'cents': 12, '_deleted': False}]
    """

    primary: tuple[str, ...]
    by: tuple[str, ...]
    aggregates: tuple[tuple[str, Retractable], ...]
    key: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", tuple(name for name in self.by if name in self.primary))

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns of the group."""
        return self.by

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the columns of the group, the aggregates, and ``_deleted``."""
        check_table(WHAT, "input", self.primary, schema)
        check_columns(WHAT, self._columns(), schema)
        taken = {*self.by, DELETED}
        for name, _ in self.aggregates:
            if name in taken:
                raise UsageError(f'{WHAT} has two columns "{name}"', hint="give the aggregate another name")
        keys = [schema.field(name).with_nullable(True) for name in self.by]
        made = [pa.field(name, each.result(_kind(each, schema))) for name, each in self.aggregates]
        return pa.schema([*keys, *made, pa.field(DELETED, pa.bool_())])

    def initial_state(self, schema: pa.Schema) -> Grouped:
        """Return a table without rows."""
        tallies: Tallies = {}
        for _, each in self.aggregates:
            tallies.setdefault((each.tally, each.column), each.tally(_kind(each, schema)))
        columns = pa.schema([schema.field(name) for name in self._columns()])
        return Grouped(self.output_schema(schema), Slots(), IndexedTable(columns), tallies)

    def restore_chunk(self, state: Grouped, chunk: pa.Table) -> None:
        """Make the changes of a chunk."""
        self._make(state, self._change(state, chunk))

    def step(self, state: Grouped, rows: pa.Table, watermark: int) -> Step:
        """Make changes, and compare the groups that they touch before and after."""
        rows = rows.select(self._columns()).combine_chunks()
        change = self._change(state, rows)
        if not len(change.indices):
            return Step(state.output.empty_table())
        touched, keys = self._touched(change)
        before, was = self._read(state, touched), state.rows.index.count(touched) > 0
        self._make(state, change)
        after, is_ = self._read(state, touched), state.rows.index.count(touched) > 0
        changed = np.flatnonzero((was != is_) | (is_ & ~identical(before, after)))
        out = self._result_rows(
            state, keys.take(pa.array(changed)), after.take(pa.array(changed)), ~is_[changed]
        )
        return Step(out, chunk=rows.take(pa.array(change.indices)))

    def next_timer(self, state: Grouped) -> int | None:
        """Return None: time alone changes nothing."""
        return None

    def snapshot(self, state: Grouped) -> pa.Table:
        """Return the columns needed of all rows."""
        return state.rows.rows().combine_chunks()

    def _columns(self) -> list[str]:
        needed = (each.column for _, each in self.aggregates if each.column)
        return list(dict.fromkeys((*self.primary, *self.by, *needed, DELETED)))

    def _change(self, state: Grouped, rows: pa.Table) -> _GroupChange:
        found, table = last(rows, self.primary), state.rows
        slots = table.find(found.keys)
        effective = table.effective(slots, found.deleted, rows.take(pa.array(found.indices)))
        indices, slots, deleted = found.indices[effective], slots[effective], found.deleted[effective]
        new = rows.take(pa.array(indices[~deleted]))
        after = np.full(len(effective), NOWHERE)
        after[~deleted] = self._groups(state.groups, new)
        delta = table.delta(found.keys[effective], slots, after, deleted)
        return _GroupChange(indices, delta, table.take(table.ages(delta.slots[delta.was])), new)

    def _groups(self, numbering: Slots, rows: pa.Table) -> Numbers:
        """Return the number of each row's group, a new one if need be."""
        groups = group(rows, self.by)
        numbers = numbering.find(groups.keys)
        new = numbers == NOWHERE
        numbers[new] = numbering.give(groups.keys[new])
        return numbers[groups.of]

    def _touched(self, change: _GroupChange) -> tuple[Numbers, pa.Table]:
        """Return the groups that rows leave or enter, and the columns of each."""
        touched, first = np.unique(np.concatenate([change.old_groups, change.new_groups]), return_index=True)
        rows = pa.concat_tables([change.old.select(self.by), change.new.select(self.by)])
        return touched, rows.combine_chunks().take(pa.array(first))

    def _make(self, state: Grouped, change: _GroupChange) -> None:
        for (_, column), tally in state.tallies.items():
            _tell(tally, change.old_groups, change.old, column, -1)
            _tell(tally, change.new_groups, change.new, column, 1)
        state.rows.put(change.delta, change.new)
        left = np.unique(change.old_groups)
        state.groups.drop(left[state.rows.index.count(left) == 0])
        state.rows.tidy(change.delta)

    def _read(self, state: Grouped, groups: Numbers) -> pa.Table:
        schema = pa.schema(list(state.output)[len(self.by) : -1])
        columns = [each.read(state.tallies[each.tally, each.column], groups) for _, each in self.aggregates]
        return pa.Table.from_arrays(columns, schema=schema)

    def _result_rows(self, state: Grouped, keys: pa.Table, results: pa.Table, deleted: Flags) -> pa.Table:
        """Return groups in the order of their columns; of those that are gone, no more than these."""
        there = pa.array(np.arange(len(deleted)), mask=deleted)
        columns = [*map(_unsigned, keys.columns), *results.take(there).columns, pa.array(deleted)]
        rows = pa.Table.from_arrays(columns, schema=state.output)
        return rows.take(pa.array(order(keys, np.zeros(len(keys), np.int64))))


def _tell(tally: Tally, groups: Numbers, rows: pa.Table, column: str, sign: int) -> None:
    # What counts rows counts a column that is never null.
    values = rows[column].combine_chunks() if column else pa.repeat(True, len(rows))
    tally.change(groups, values, sign)


def _kind(aggregate: Retractable, schema: pa.Schema) -> pa.DataType:
    return schema.field(aggregate.column).type if aggregate.column else pa.bool_()


def _unsigned(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column in which zero has no sign: groups have one zero."""
    if not pa.types.is_floating(column.type):
        return column
    floats = column.combine_chunks()
    values = floats.fill_null(0).to_numpy(zero_copy_only=False) + 0.0
    made = pa.array(values, mask=floats.is_null().to_numpy(zero_copy_only=False)).cast(column.type)
    return pa.chunked_array([made])
