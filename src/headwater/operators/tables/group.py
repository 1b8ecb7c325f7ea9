"""A table made of another one: its rows grouped, and aggregates of each group that stay right.

A deletion tells the primary key alone, and a row may move to another group. So rows can be spread over
buckets only by those columns of the group that are in the primary key; where there are none, all rows
are in one bucket, which finds the old row of a key and takes it out of its group.

Invariant: after a step, the last result of each group is what aggregating the table as it is then gives,
and groups whose last result is a deletion have no rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.errors import UsageError
from headwater.operators.aggregates.by_group import added
from headwater.operators.aggregates.filtered import check_condition, masked, satisfied
from headwater.operators.columns import check_columns, one_array, only
from headwater.operators.groups import Flags, Numbers
from headwater.operators.memory.key_hash import HashedGroups, hashed_groups
from headwater.operators.memory.operator_memory import OperatorMemory
from headwater.operators.memory.row_by_key import RowByKey
from headwater.operators.memory.slots import by_column, by_columns, next_numbers, slots_of_keys
from headwater.operators.operator import Operator, Step
from headwater.operators.order import order
from headwater.operators.table_changes import check_table, effective, identical, last
from headwater.operators.tables.retracting import Retractable
from headwater.operators.tables.tallies import Tally, ValueChanges
from headwater.record import DELETED

WHAT = "tables.group"
_ID, _ROWS = pa.field("id", pa.int64()), pa.field("rows", pa.int64())


@dataclass(frozen=True)
class NamedTally:
    """A tally of a column, and the names under which a group's row has what it knows."""

    tally: Tally
    column: str
    names: tuple[str, ...]


@dataclass
class Grouped:
    """The rows of a table, and of each group a row with all that is known of it."""

    output: pa.Schema
    rows: RowByKey
    groups: RowByKey
    tallies: tuple[NamedTally, ...]
    read_by: tuple[int, ...]
    """The tally that each aggregate is read from."""
    given: int = 0
    """How many groups were given a number so far."""


@dataclass(frozen=True)
class _Shift:
    """Rows that leave groups (-1) and enter them (1), by group."""

    rows: pa.Table
    signs: Numbers
    groups: HashedGroups


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

    version = 3
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
        check_columns(WHAT, [*self.by, *(each.column for _, each in self.aggregates if each.column)], schema)
        for each in self._conditional().values():
            check_condition(each.where or "", schema)
        taken = {*self.by, DELETED}
        for name, _ in self.aggregates:
            if name in taken:
                raise UsageError(f'{WHAT} has two columns "{name}"', hint="give the aggregate another name")
        keys = [schema.field(name).with_nullable(True) for name in self.by]
        made = [pa.field(name, each.result(_kind(each, schema))) for name, each in self.aggregates]
        return pa.schema([*keys, *made, pa.field(DELETED, pa.bool_())])

    def initial_state(self, schema: pa.Schema) -> Grouped:
        """Return a table without rows."""
        kinds = list(dict.fromkeys((each.tally, each.source) for _, each in self.aggregates))
        tallies = tuple(self._tally(number, kind, schema) for number, kind in enumerate(kinds))
        known = pa.schema([_ID, _ROWS, *(field for each in tallies for field in _fields(each))])
        columns = pa.schema([self._field(name, schema) for name in self._columns()])
        read_by = tuple(kinds.index((each.tally, each.source)) for _, each in self.aggregates)
        by_key = RowByKey(columns, by_columns(self.key)), RowByKey(known, by_column(_ID.name))
        return Grouped(self.output_schema(schema), *by_key, tallies, read_by)

    def memory(self, state: Grouped) -> OperatorMemory:
        """Return the rows, the groups, and the values that are held in order."""
        containers = {"rows": state.rows.runs, "groups": state.groups.runs}
        counters: dict[str, tuple[object, str]] = {"given": (state, "given")}
        for number, each in enumerate(state.tallies):
            containers |= {f"{number}.{name}": runs for name, runs in each.tally.containers().items()}
            counters |= {f"{number}.{name}": place for name, place in each.tally.counters().items()}
        return OperatorMemory(containers, counters)

    def step(self, state: Grouped, rows: pa.Table, watermark: int) -> Step:
        """Make changes, and compare the groups that they touch before and after."""
        shift = self._shift(state, self._masked(rows).select([*self._columns(), DELETED]).combine_chunks())
        if not len(shift.rows):
            return Step(state.output.empty_table())
        known, groups = state.groups.find(shift.groups.keys)
        slots = slots_of_keys(shift.rows.take(pa.array(shift.groups.first)), self.key)
        before = _filled(state, known, groups, slots)
        after = _changed(state, before, shift)
        gone = one_array(after["rows"]).to_numpy() == 0
        state.groups.change(shift.groups.keys, after, gone)
        was, is_ = self._read(state, before), self._read(state, after)
        changed = np.flatnonzero(np.where(known & ~gone, ~identical(was, is_), known != ~gone))
        keys = shift.rows.select(self.by).take(pa.array(shift.groups.first[changed]))
        return Step(self._result_rows(state, keys, is_.take(pa.array(changed)), gone[changed]))

    def next_timer(self, state: Grouped) -> int | None:
        """Return None: time alone changes nothing."""
        return None

    def _columns(self) -> list[str]:
        needed = (each.source for _, each in self.aggregates if each.source)
        return list(dict.fromkeys((*self.primary, *self.by, *needed)))

    def _conditional(self) -> dict[str, Retractable]:
        """Return the aggregates of some rows only, by the column that holds what they aggregate."""
        return {each.source: each for _, each in self.aggregates if each.where is not None}

    def _field(self, name: str, schema: pa.Schema) -> pa.Field:
        """Return a column of the rows that are held."""
        found = self._conditional().get(name)
        return schema.field(name) if found is None else pa.field(name, _kind(found, schema))

    def _masked(self, rows: pa.Table) -> pa.Table:
        """Return rows with a column for each aggregate that has a condition, null where it does not hold."""
        every = pa.chunked_array([pa.repeat(True, len(rows))])
        for name, each in self._conditional().items():
            values = rows.column(each.column) if each.column else every
            rows = rows.append_column(name, masked(values, satisfied(each.where or "", rows)))
        return rows

    def _tally(self, number: int, kind: tuple[type[Any], str], schema: pa.Schema) -> NamedTally:
        """Make the tally that some aggregates share."""
        users = [each for _, each in self.aggregates if (each.tally, each.source) == kind]
        ends = reduce(or_, (each.ends for each in users))
        tally = kind[0](_kind(users[0], schema), ends)
        return NamedTally(tally, kind[1], tuple(f"{number}.{field.name}" for field in tally.fields))

    def _shift(self, state: Grouped, rows: pa.Table) -> _Shift:
        """Change the rows of the table, and return those that leave groups and enter them."""
        found = last(rows, self.primary)
        known = state.rows.find(found.keys)
        chosen = effective(found, rows, known)
        found, was = found.only(chosen), known.known[chosen]
        old, new = only(known.rows, chosen), rows.take(pa.array(found.indices)).drop_columns([DELETED])
        state.rows.change(found.keys, new, found.deleted)
        left, entered = only(old, was), only(new, ~found.deleted)
        moved = pa.concat_tables([left, entered.cast(left.schema)]).combine_chunks()
        signs = np.where(np.arange(len(moved)) < len(left), -1, 1)
        return _Shift(moved, signs, hashed_groups(moved, self.by))

    def _read(self, state: Grouped, groups: pa.Table) -> pa.Table:
        """Return the aggregates of groups, given what is known of them."""
        schema = pa.schema(list(state.output)[len(self.by) : -1])
        columns = []
        for (_, each), number in zip(self.aggregates, state.read_by, strict=True):
            held = state.tallies[number]
            columns.append(each.read(held.tally, [one_array(groups[name]) for name in held.names]))
        return pa.Table.from_arrays(columns, schema=schema)

    def _result_rows(self, state: Grouped, keys: pa.Table, results: pa.Table, deleted: Flags) -> pa.Table:
        """Return groups in the order of their columns; of those that are gone, no more than these."""
        there = pa.array(np.arange(len(deleted)), mask=deleted)
        columns = [*map(_unsigned, keys.columns), *results.take(there).columns, pa.array(deleted)]
        rows = pa.Table.from_arrays(columns, schema=state.output)
        return rows.take(pa.array(order(keys, np.zeros(len(keys), np.int64))))


def _fields(held: NamedTally) -> list[pa.Field]:
    pairs = zip(held.tally.fields, held.names, strict=True)
    return [field.with_name(name) for field, name in pairs]


def _filled(state: Grouped, known: Flags, groups: pa.Table, slots: Numbers) -> pa.Table:
    """Return what is known of groups, those that are new with a number and zeros."""
    if known.all():
        return groups
    new = np.flatnonzero(~known)
    ids = groups.column(0).fill_null(0).to_numpy().copy()
    ids[new] = next_numbers(state.given, slots[new])
    state.given += len(new)
    rest = [each if pa.types.is_list(each.type) else each.fill_null(0) for each in groups.columns[1:]]
    return pa.Table.from_arrays([pa.array(ids), *rest], schema=groups.schema)


def _changed(state: Grouped, groups: pa.Table, shift: _Shift) -> pa.Table:
    """Return what is known of groups after rows have left them and entered them."""
    ids, rows = (one_array(groups[field.name]) for field in (_ID, _ROWS))
    of = shift.groups.of
    columns = [ids, pa.array(rows.to_numpy() + added(shift.signs, of, len(ids)))]
    for held in state.tallies:
        # What counts rows counts a column that is never null.
        values = one_array(shift.rows[held.column]) if held.column else pa.repeat(True, len(of))
        changes = ValueChanges(ids.to_numpy(), of, shift.signs, values)
        columns += held.tally.changed([one_array(groups[name]) for name in held.names], changes)
    return pa.Table.from_arrays(columns, schema=groups.schema)


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
