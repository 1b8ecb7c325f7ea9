"""A step of 1,000 rows while a state grows beyond the memory, and the first after a restart: what they cost.

``python -m bench.memory [OPERATOR ...] [KEYS ...]`` fills one bucket of an operator to so many keys, one
after the other.
"""

from __future__ import annotations

import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from headwater.engine.files.local_files import LocalFiles
from headwater.engine.state.bucket import Bucket, BucketMeta
from headwater.engine.state.cache import Cache
from headwater.engine.state.chunk_files import Files
from headwater.engine.state.run_files import StateRunFiles
from headwater.operators.aggregates import agg
from headwater.operators.event_time import NEVER
from headwater.operators.operator import Operator
from headwater.operators.pairing import pairing
from headwater.operators.spec import Side
from headwater.transforms import joins, tables, windows
from headwater.transforms.rows import dedup, latest

SCHEMA = pa.schema(
    [("k", pa.string()), ("city", pa.string()), ("v", pa.int64()), ("at", pa.timestamp("us", "UTC"))]
)
SIDE = Side(SCHEMA, "at")
CHANGES = SCHEMA.append(pa.field("_deleted", pa.bool_()))
CITIES = pa.schema([("city", pa.string()), ("region", pa.string()), ("_deleted", pa.bool_())])
TABLE_SIDE = Side(SCHEMA, "at", ("k",))
TABLE, CITY_TABLE = Side(CHANGES, "at", ("k",)), Side(CITIES, None, ("city",))
FILL, STEP, STEPS = 250_000, 1000, 15
SIZES = [100_000, 1_000_000, 4_000_000]


def rows(ids: Any, at: int) -> pa.Table:
    listed = ids.tolist()
    columns = [
        pa.array([f"customer-{each}" for each in listed]),
        pa.array([f"city {each % 1000}" for each in listed]),
        pa.array(ids),
        pa.array(np.full(len(listed), at)).cast(SCHEMA.field("at").type),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def changes(ids: Any, at: int) -> pa.Table:
    """Changes of customers, of whom ten live in each city."""
    cities = pa.array([f"city {each}" for each in (ids // 10).tolist()])
    known = rows(ids, at).set_column(1, "city", cities).set_column(2, "v", pa.array(ids + at))
    return known.append_column(CHANGES.field("_deleted"), pa.repeat(False, len(ids)))


def both(ids: Any, at: int) -> pa.Table:
    """Changes of customers, and to one of ten the city of a customer: ten results change with it."""
    cities = np.unique(ids[::10] // 10).tolist()
    names, regions = [f"city {each}" for each in cities], [f"region {each % 100} {at}" for each in cities]
    right = pa.Table.from_arrays([names, regions, pa.repeat(False, len(cities))], schema=CITIES)
    return JOINED.sent(changes(ids, at), right, JOINED.schema("join", CHANGES, CITIES))


def halves(ids: Any, at: int) -> pa.Table:
    """Rows of both inputs of a join of streams."""
    return KEYED.sent(rows(ids[::2], at), rows(ids[1::2], at), KEYED.schema("join", SCHEMA, SCHEMA))


JOIN = joins.tables(None, on="city")
JOINED, KEYED = pairing("join", "city"), pairing("join", "k")
WITHIN = joins.within(None, on="k", before="1 day", after="1 day", how="left", prefix="r_")
AS_OF = joins.as_of(None, on="k", prefix="r_")


class Measured(NamedTuple):
    """An operator, the schema of its rows, and rows of some keys."""

    operator: Callable[[], Operator[Any]]
    schema: pa.Schema
    rows: Callable[[Any, int], pa.Table]
    waits: bool = False
    """Whether rows wait for the clock, so that it has to go on."""


OPERATORS = {
    "latest": Measured(lambda: latest("k").build(SIDE), SCHEMA, rows),
    "tumbling": Measured(
        lambda: windows.tumbling("1 day", by="k", n=agg.count(), v=agg.sum("v")).build(SIDE), SCHEMA, rows
    ),
    "dedup": Measured(lambda: dedup("k", "1 day").build(SIDE), SCHEMA, rows),
    "within": Measured(
        lambda: WITHIN.build(SIDE, SIDE), KEYED.schema("join", SCHEMA, SCHEMA), halves, waits=True
    ),
    "as_of": Measured(
        lambda: AS_OF.build(SIDE, TABLE_SIDE), KEYED.schema("join", SCHEMA, SCHEMA), halves, waits=True
    ),
    "tables.group": Measured(
        lambda: tables.group("city", n=agg.count(), v=agg.sum("v"), most=agg.max("v")).build(TABLE),
        CHANGES,
        changes,
    ),
    "joins.tables": Measured(
        lambda: JOIN.build(TABLE, CITY_TABLE), JOINED.schema("join", CHANGES, CITIES), both
    ),
}


class Filled:
    """A bucket of an operator, on disk, that is stepped as a worker does."""

    def __init__(self, measured: Measured, folder: Path):
        self._operator, self._measured, self._cache = measured.operator(), measured, Cache(1 << 30)
        local = LocalFiles(folder)
        files = StateRunFiles(local, Files(local))
        self._bucket = Bucket(self._operator, measured.schema, ("node", 0), files)
        self.meta, self.keys, self._clock = BucketMeta(), 0, 0

    def fill(self, keys: int) -> None:
        while self.keys < keys:
            ids = np.arange(self.keys, min(self.keys + FILL, keys))
            self.step(ids)
            self.keys += len(ids)

    def step(self, ids: Any, cache: Cache | None = None) -> float:
        self._clock += 1
        table = self._measured.rows(ids, self._clock)
        cache = self._cache if cache is None else cache  # one that is empty counts as false
        started = time.perf_counter()
        state = self._bucket.load(self.meta, cache).state
        self._operator.step(state, table, self._clock if self._measured.waits else NEVER)
        self.meta = self._bucket.store(self.meta, state, cache)
        return time.perf_counter() - started


def main(names: list[str], sizes: list[int]) -> None:
    random = np.random.default_rng(0)
    print("| operator | keys | on disk | 1,000 rows, p50 | longest | first after a restart | memory |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in names:
        folder = Path(tempfile.mkdtemp())
        filled = Filled(OPERATORS[name], folder)
        for keys in sizes:
            filled.fill(keys)
            took = [filled.step(random.integers(0, keys, STEP)) for _ in range(STEPS)]
            first = filled.step(random.integers(0, keys, STEP), Cache(1 << 30))
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
            print(
                f"| {name} | {keys:,} | {filled.meta.size / 1e6:,.0f} MB | {1e3 * np.median(took):.1f} ms "
                f"| {1e3 * max(took):.0f} ms | {1e3 * first:.0f} ms | {memory:,.0f} MB |",
                flush=True,
            )
        shutil.rmtree(folder)


if __name__ == "__main__":
    given = [each for each in sys.argv[1:] if not each.isdigit()]
    main(given or list(OPERATORS), [int(each) for each in sys.argv[1:] if each.isdigit()] or SIZES)
