"""Two tables joined into one that stays right: a change on either side changes, adds or removes results.

A deletion tells the primary key alone, and a row may change what it is joined by. So rows can be spread
over buckets only by those columns of the join that are in the primary keys of both tables; where there
are none, all rows are in one bucket, which finds the old row of a key and the partners of a row itself.

Invariant: after a step, the last result of each identity is what a join of the tables as they are then
gives, and identities whose last result is a deletion are not in that join.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headwater.operators.groups import Flags, Numbers, alike, group, with_nulls
from headwater.operators.joined import Joined
from headwater.operators.memory.indexed_table import Delta, IndexedTable
from headwater.operators.memory.numbered_rows import NOWHERE
from headwater.operators.memory.slots import Slots
from headwater.operators.operator import Operator, Step
from headwater.operators.pairing import LEFT, RIGHT, SIDE, Pairing, side_of
from headwater.operators.spec import Side
from headwater.operators.table_changes import last
from headwater.operators.tables.shape import TableShape
from headwater.record import DELETED


@dataclass(frozen=True)
class TableJoinState:
    """The rows of both tables, and the numbers of the keys by which they meet."""

    schema: pa.Schema
    output: pa.Schema
    joined: Joined
    keys: Slots
    left: IndexedTable
    right: IndexedTable


class _JoinChange(NamedTuple):
    """What a step changes on one side: where that is in its rows, which slots, and the new rows."""

    indices: Numbers
    delta: Delta
    rows: pa.Table


class _Results(NamedTuple):
    """Results, as pairs of slots in one number each, and the ages of their left and right rows."""

    pairs: Numbers
    left: Numbers
    right: Numbers

    def only(self, flags: Flags) -> _Results:
        return _Results(self.pairs[flags], self.left[flags], self.right[flags])


@dataclass(frozen=True)
class TableJoin(Operator[TableJoinState]):
    """Join two tables, and tell each result that is new, changed or gone.

    Of several changes of a key in one step the last one counts. A step emits an identity once at the
    most: first those that are gone, with ``_deleted`` and the identity alone, then those that are new
    or changed, each in the order of their left and right rows' last changes. Null keys meet nothing.
    Nothing is late. The state is the rows of both tables as they are now; a restart finds them so.

    >>> from headwater.operators.event_time import NEVER
    >>> names = pa.schema([("id", pa.int64()), ("name", pa.string()), ("_deleted", pa.bool_())])
    >>> ages = pa.schema([("id", pa.int64()), ("age", pa.int64()), ("_deleted", pa.bool_())])
    >>> on = Pairing((("id", "id"),))
    >>> join = TableJoin(on, Side(names, None, ("id",)), Side(ages, None, ("id",)))
    >>> ada = pa.Table.from_pylist([{"id": 1, "name": "ada"}], names)
    >>> old = pa.Table.from_pylist([{"id": 1, "age": 36}], ages)
    >>> rows = on.sent(ada, old, on.schema("join", names, ages))
    >>> join.step(join.initial_state(rows.schema), rows, watermark=NEVER).out.to_pylist()
    [{'id': 1, 'name': 'ada', 'age': 36, '_deleted': False}]
    """

    pairing: Pairing
    left: Side
    right: Side
    how: str = "inner"
    prefix: str | None = None
    key: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self._shape().spread)

    @property
    def identity(self) -> tuple[str, ...]:
        """The primary keys of the sides that are never missing, as they come out."""
        return self._shape().identity

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the columns of both tables, and ``_deleted``."""
        self._shape().check()
        return self._shape().joined.schema.append(pa.field(DELETED, pa.bool_()))

    def initial_state(self, schema: pa.Schema) -> TableJoinState:
        """Return two tables without rows."""
        sides = (IndexedTable(self.left.schema), IndexedTable(self.right.schema))
        return TableJoinState(
            schema.remove_metadata(), self.output_schema(schema), self._shape().joined, Slots(), *sides
        )

    def restore_chunk(self, state: TableJoinState, chunk: pa.Table) -> None:
        """Make the changes of a chunk."""
        changes = self._changes(state, chunk)
        _put(state, changes)
        _tidy(state, changes)

    def step(self, state: TableJoinState, rows: pa.Table, watermark: int) -> Step:
        """Make changes, and compare the results that they touch before and after."""
        rows = rows.combine_chunks()
        changes = self._changes(state, rows)
        indices = np.sort(np.concatenate([change.indices for change in changes]))
        if not len(indices):
            return Step(state.output.empty_table())
        before = self._results(state, changes)
        _put(state, changes)
        after = self._results(state, changes)
        out = self._emitted(state, before, after)
        _tidy(state, changes)
        return Step(out, chunk=rows.take(pa.array(indices)))

    def next_timer(self, state: TableJoinState) -> int | None:
        """Return None: time alone changes nothing."""
        return None

    def snapshot(self, state: TableJoinState) -> pa.Table:
        """Return the rows of both tables."""
        return self.pairing.sent(state.left.rows(), state.right.rows(), state.schema).combine_chunks()

    def _shape(self) -> TableShape:
        return TableShape(self.pairing, self.left, self.right, self.how, self.prefix)

    def _changes(self, state: TableJoinState, rows: pa.Table) -> tuple[_JoinChange, _JoinChange]:
        left = self._side(state, rows, LEFT, self.pairing.left(rows))
        return left, self._side(state, rows, RIGHT, self.pairing.right(rows))

    def _side(self, state: TableJoinState, rows: pa.Table, side: str, changes: pa.Table) -> _JoinChange:
        table, primary = (state.left, self.left.table) if side == LEFT else (state.right, self.right.table)
        found = last(changes, primary)
        slots = table.find(found.keys)
        effective = table.effective(slots, found.deleted, changes.take(pa.array(found.indices)))
        where = np.flatnonzero(rows[SIDE].to_numpy() == side_of(side))[found.indices[effective]]
        deleted, fresh = (
            found.deleted[effective],
            changes.take(pa.array(found.indices[effective][~found.deleted[effective]])),
        )
        after = np.full(len(effective), NOWHERE)
        after[~deleted] = self._meet(state.keys, rows.take(pa.array(where[~deleted])))
        return _JoinChange(where, table.delta(found.keys[effective], slots[effective], after, deleted), fresh)

    def _meet(self, keys: Slots, rows: pa.Table) -> Numbers:
        """Return the number of the key by which each row meets others, a new one if need be."""
        groups = group(rows, self.pairing.key)
        numbers = np.full(len(groups.keys), NOWHERE)
        whole = ~with_nulls(rows.select(self.pairing.key))[groups.first]
        numbers[whole] = keys.find(groups.keys[whole])
        new = whole & (numbers == NOWHERE)
        numbers[new] = keys.give(groups.keys[new])
        return numbers[groups.of]

    def _results(self, state: TableJoinState, changes: tuple[_JoinChange, _JoinChange]) -> _Results:
        """Return the results that are now, of those that the changes touch."""
        left, right = state.left, state.right
        mine, other = _there(left, changes[0].delta), _there(right, changes[1].delta)
        onward, back = right.index.get(left.index_keys(mine)), left.index.get(right.index_keys(other))
        fresh = ~np.isin(back.numbers, mine)  # the others were found from the left
        found = [
            _paired(mine[onward.of], onward.numbers),
            _paired(back.numbers[fresh], other[back.of[fresh]]),
        ]
        if self.how in ("left", "full"):
            alone = _alone(left, right, mine, changes[1].delta)
            found.append(_paired(alone, np.full(len(alone), NOWHERE)))
        if self.how in ("right", "full"):
            alone = _alone(right, left, other, changes[0].delta)
            found.append(_paired(np.full(len(alone), NOWHERE), alone))
        pairs = np.concatenate(found)
        return _Results(pairs, left.ages((pairs >> 32) - 1), right.ages((pairs & 0xFFFFFFFF) - 1))

    def _emitted(self, state: TableJoinState, before: _Results, after: _Results) -> pa.Table:
        """Return the results that are gone, and those that are new or changed."""
        gone = before.only(~np.isin(before.pairs, after.pairs, assume_unique=True))
        identity = self.identity
        old, new = self._rows(state, gone).select(identity), self._rows(state, after)
        if len(old) and len(new):
            # One that is gone may have made room for another of its identity: then that is all to tell.
            numbers = alike(pa.concat_tables([old, new.select(identity)]))
            old = old.filter(pa.array(~np.isin(numbers[: len(old)], numbers[len(old) :])))
        tables = [_marked(old, state.output, True), _marked(new, state.output, False)]
        return pa.concat_tables(tables).combine_chunks()

    def _rows(self, state: TableJoinState, results: _Results) -> pa.Table:
        order = np.lexsort((results.right, results.left))
        left = state.left.take(results.left[order], *state.joined.left.names)
        return state.joined.rows(left, state.right.take(results.right[order], *state.joined.right.names))


def _put(state: TableJoinState, changes: tuple[_JoinChange, _JoinChange]) -> None:
    for table, change in zip((state.left, state.right), changes, strict=True):
        table.put(change.delta, change.rows)


def _tidy(state: TableJoinState, changes: tuple[_JoinChange, _JoinChange]) -> None:
    """Forget the keys by which nothing meets any more, and the rows that are gone."""
    touched = np.unique(np.concatenate([change.delta.before for change in changes]))
    touched = touched[touched != NOWHERE]
    state.keys.drop(touched[state.left.index.count(touched) + state.right.index.count(touched) == 0])
    for table, change in zip((state.left, state.right), changes, strict=True):
        table.tidy(change.delta)


def _there(table: IndexedTable, delta: Delta) -> Numbers:
    """Return the slots that have a row now."""
    some: Numbers = delta.slots[table.ages(delta.slots) != NOWHERE]
    return some


def _alone(table: IndexedTable, others: IndexedTable, changed: Numbers, delta: Delta) -> Numbers:
    """Return the rows without a partner, of those changed and of those that changes of others touch."""
    touched = np.unique(np.concatenate([delta.before, delta.after]))
    some = np.unique(np.concatenate([changed, table.index.get(touched).numbers]))
    alone: Numbers = some[others.index.count(table.index_keys(some)) == 0]
    return alone


def _paired(left: Numbers, right: Numbers) -> Numbers:
    return ((left + 1) << 32) | (right + 1)


def _marked(rows: pa.Table, schema: pa.Schema, deleted: bool) -> pa.Table:
    """Return rows with all columns of a schema, nulls for those that they do not have."""
    columns = [
        rows[each.name] if each.name in rows.column_names else pa.nulls(len(rows), each.type)
        for each in list(schema)[:-1]
    ]
    return pa.Table.from_arrays([*columns, pa.repeat(pa.scalar(deleted), len(rows))], schema=schema)
