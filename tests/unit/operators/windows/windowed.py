"""What tests of windows share: two small aggregates, and rows out as an oracle tells them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.operators.aggregates.aggregate import Aggregate
from headwater.operators.event_time import Times
from headwater.operators.groups import Numbers
from headwater.operators.operator import Operator, run
from headwater.operators.windows.windowing import Windowing
from unit.operators.stepping import SCHEMA, Row, key, listed, table

BY = ("k", "x")


@dataclass(frozen=True)
class Count(Aggregate):
    """How many rows."""

    def output(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        return [pa.field(name, pa.int64())]

    def state(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        return [pa.field(f"{name}.count", pa.int64())]

    def partial(self, rows: pa.Table, at: Times, groups: Numbers, count: int) -> list[pa.Array]:
        assert set(groups.tolist()) == set(range(count))
        return [pa.array(np.bincount(groups, minlength=count).astype(np.int64))]

    def merge(self, partials: list[pa.Array], groups: Numbers, count: int) -> list[pa.Array]:
        assert all(isinstance(part, pa.Array) for part in partials)
        assert len(partials[0]) == len(groups)
        assert set(groups.tolist()) == set(range(count))
        sums = np.zeros(count, np.int64)
        np.add.at(sums, groups, partials[0].to_numpy())
        return [pa.array(sums)]

    def finish(self, partials: list[pa.Array]) -> list[pa.Array]:
        return partials


@dataclass(frozen=True)
class Sum(Count):
    """A sum of integers, and when the last of them was."""

    column: str = "v"

    def output(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        return [pa.field(name, pa.int64()), pa.field(f"{name}_last", pa.int64())]

    def state(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        return [pa.field(f"{name}.sum", pa.int64()), pa.field(f"{name}.last", pa.int64())]

    def partial(self, rows: pa.Table, at: Times, groups: Numbers, count: int) -> list[pa.Array]:
        assert rows.column(self.column).num_chunks <= 1
        return self.merge([rows.column(self.column).combine_chunks(), pa.array(at)], groups, count)

    def merge(self, partials: list[pa.Array], groups: Numbers, count: int) -> list[pa.Array]:
        last = np.full(count, -(1 << 63))
        np.maximum.at(last, groups, partials[1].to_numpy())
        return [*super().merge(partials[:1], groups, count), pa.array(last)]


AGGREGATES = (("n", Count()), ("total", Sum()))


def windowing(what: str, late: str = "drop", keep: int = 0, by: tuple[str, ...] = BY) -> Windowing:
    return Windowing(what, by, "at", AGGREGATES, late, timedelta(microseconds=keep))


def made(rows: list[Row]) -> Row:
    """The aggregates of rows."""
    return {"n": len(rows), "total": sum(r["v"] for r in rows), "total_last": max(r["at"] for r in rows)}


def named(row: Row, by: tuple[str, ...] = BY) -> Row:
    """The key of a row as it comes out: a zero has no sign."""
    return {name: row[name] + 0.0 if isinstance(row[name], float) else row[name] for name in by}


def last(rows: list[Row], identity: tuple[str, ...], without: tuple[str, ...] = ("revision",)) -> list[str]:
    """The last row of each identity, as texts to be compared, without columns that no proof compares."""
    found: dict[Any, Row] = {}
    for row in rows:
        found[key(row, identity)] = row
    living = [row for row in found.values() if not row.get("_deleted")]
    return sorted(repr({name: row[name] for name in row if name not in without}) for row in living)


def batch(operator: Operator[Any], rows: list[Row], clock: int) -> list[Row]:
    """What comes out of everything at once."""
    return [row for step in run(operator, table(rows, SCHEMA), clock) for row in listed(step.out)]


def without_late(rows: list[Row]) -> list[Row]:
    """Late rows as they came."""
    return [{name: row[name] for name in SCHEMA.names} for row in rows]
