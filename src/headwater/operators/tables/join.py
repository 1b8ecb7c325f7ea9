"""Two tables joined into one that stays right: a change on either side changes, adds or removes results.

A deletion tells the primary key alone, and a row may change what it is joined by. So rows can be spread
over buckets only by those columns of the join that are in the primary keys of both tables; where there
are none, all rows are in one bucket, which finds the old row of a key and the partners of a row itself.

Invariant: after a step, the last result of each identity is what a join of the tables as they are then
gives, and identities whose last result is a deletion are not in that join.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from headwater.operators.groups import Flags, Numbers, alike, plain_columns, with_nulls
from headwater.operators.joined import Joined
from headwater.operators.memory.indexed_table import UNMET, IndexedRows, IndexedTable, IndexKeys
from headwater.operators.memory.key_hash import KeyHashes, hashes
from headwater.operators.memory.operator_memory import OperatorMemory
from headwater.operators.memory.row_by_key import FoundRows
from headwater.operators.memory.slots import slots_of_keys
from headwater.operators.operator import Operator, Step
from headwater.operators.pairing import LEFT, RIGHT, SIDE, Pairing, side_of
from headwater.operators.spec import Side
from headwater.operators.table_changes import effective, last
from headwater.operators.tables.matching import (
    NOBODY,
    Candidates,
    JoinPairs,
    MeetingRows,
    candidates,
    joined_pairs,
    numbered,
)
from headwater.operators.tables.shape import TableShape
from headwater.record import DELETED


@dataclass(frozen=True)
class TableJoinState:
    """The rows of both tables, and how they come out."""

    output: pa.Schema
    identity: tuple[str, ...]
    joined: Joined
    left: IndexedTable
    right: IndexedTable


@dataclass(frozen=True)
class _JoinChange:
    """What a step changes on one side: keys, what they had, which are deleted, and what the others get."""

    keys: KeyHashes
    old: IndexedRows
    deleted: Flags
    index: IndexKeys
    rows: pa.Table

    def put(self, table: IndexedTable) -> IndexedRows:
        """Make the change."""
        return table.change(self.keys, self.old, self.deleted, self.index, self.rows)


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

    version = 4
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
        shape = self._shape()
        joined = shape.joined
        sides = (IndexedTable(joined.left), IndexedTable(joined.right))
        return TableJoinState(self.output_schema(schema), shape.identity, joined, *sides)

    def memory(self, state: TableJoinState) -> OperatorMemory:
        """Return the rows of both tables."""
        sides = {"left": state.left, "right": state.right}
        containers = {n: runs for side, table in sides.items() for n, runs in table.containers(side).items()}
        counters = {n: number for side, table in sides.items() for n, number in table.counters(side).items()}
        return OperatorMemory(containers, counters)

    def step(self, state: TableJoinState, rows: pa.Table, watermark: int) -> Step:
        """Make changes, and compare the results that they touch before and after."""
        rows = rows.combine_chunks()
        left = self._change(state.left, rows, LEFT, self.left.table)
        right = self._change(state.right, rows, RIGHT, self.right.table)
        if not len(left.deleted) + len(right.deleted):
            return Step(state.output.empty_table())
        # Both sides are asked for what is there before either is changed.
        sides = self._candidates(state, left, right)
        return Step(self._emitted(state, *sides))

    def next_timer(self, state: TableJoinState) -> int | None:
        """Return None: time alone changes nothing."""
        return None

    def _shape(self) -> TableShape:
        return TableShape(self.pairing, self.left, self.right, self.how, self.prefix)

    def _change(
        self, table: IndexedTable, rows: pa.Table, side: str, primary: tuple[str, ...]
    ) -> _JoinChange:
        changes = self.pairing.left(rows) if side == LEFT else self.pairing.right(rows)
        found = last(changes, primary)
        old = table.find(found.keys)
        chosen = effective(found, changes, FoundRows(old.known, old.rows))
        found, old = found.only(chosen), old.only(chosen)
        put = found.indices[~found.deleted]
        mine = np.flatnonzero(rows[SIDE].to_numpy() == side_of(side))[put]
        keys = rows.select(self.pairing.key).take(pa.array(mine))
        index = IndexKeys(_index_keys(keys), slots_of_keys(keys, self.key))
        new = changes.select(table.names).take(pa.array(put))
        return _JoinChange(found.keys, old, found.deleted, index, new)

    def _candidates(
        self, state: TableJoinState, left: _JoinChange, right: _JoinChange
    ) -> tuple[Candidates, Candidates]:
        """Make the changes, and return the rows of both sides that results may be made of."""
        index, keys = numbered([left.old.index, left.index.keys, right.old.index, right.index.keys])
        mine, other, both = (_distinct(some) for some in (keys[:2], keys[2:], keys))
        # Whether a row is alone is asked of those that changes of the other side touch, too.
        found = (
            _under(state.left, index, both if self.how in ("right", "full") else other),
            _under(state.right, index, both if self.how in ("left", "full") else mine),
        )
        old = MeetingRows(left.old, keys[0]), MeetingRows(right.old, keys[2])
        put = MeetingRows(left.put(state.left), keys[1]), MeetingRows(right.put(state.right), keys[3])
        return candidates(found[0], old[0], put[0]), candidates(found[1], old[1], put[1])

    def _emitted(self, state: TableJoinState, left: Candidates, right: Candidates) -> pa.Table:
        """Return the results that are gone, and those that are new or changed."""
        before = joined_pairs(left.before, right.before, self.how)
        after = joined_pairs(left.after, right.after, self.how)
        gone = before.take(~np.isin(before.numbers, after.numbers, assume_unique=True))
        new = self._rows(state, left, right, after)
        out = _marked(new, state.output, False)
        if not len(gone.numbers):
            return out
        old = self._rows(state, left, right, gone).select(state.identity)
        if len(new):
            # One that is gone may have made room for another of its identity: then that is all to tell.
            numbers = alike(pa.concat_tables([old, new.select(state.identity)]))
            old = old.filter(pa.array(~np.isin(numbers[: len(old)], numbers[len(old) :])))
        return pa.concat_tables([_marked(old, state.output, True), out]).combine_chunks()

    def _rows(self, state: TableJoinState, left: Candidates, right: Candidates, pairs: JoinPairs) -> pa.Table:
        return state.joined.rows(left.take(pairs.left), right.take(pairs.right))


def _distinct(keys: list[Numbers]) -> Numbers:
    """Return the numbers of keys that rows meet by, in order."""
    numbers = np.unique(np.concatenate(keys))
    met: Numbers = numbers[numbers != NOBODY]
    return met


def _under(table: IndexedTable, index: KeyHashes, some: Numbers) -> MeetingRows:
    """Return the rows of a table under some keys, by their numbers."""
    of, rows = table.under(index.take(some))
    return MeetingRows(rows, some[of])


def _index_keys(keys: pa.Table) -> KeyHashes:
    """Return the keys by which rows meet others; one with a null meets none."""
    high, low = hashes(plain_columns(keys, keys.column_names), len(keys))
    return KeyHashes(high, np.where(with_nulls(keys), UNMET, low))


def _marked(rows: pa.Table, schema: pa.Schema, deleted: bool) -> pa.Table:
    """Return rows with all columns of a schema, nulls for those that they do not have."""
    columns = [
        rows[each.name] if each.name in rows.column_names else pa.nulls(len(rows), each.type)
        for each in list(schema)[:-1]
    ]
    return pa.Table.from_arrays([*columns, pa.repeat(pa.scalar(deleted), len(rows))], schema=schema)
