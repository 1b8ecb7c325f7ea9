"""A step of 1,000 rows while a state grows beyond the memory, and the first after a restart: what they cost.

``python -m bench.memory [KEYS ...]`` fills one bucket of an operator to so many keys, one after the other.
"""

from __future__ import annotations

import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.engine.state.bucket import Bucket, BucketMeta
from headwater.engine.state.cache import Cache
from headwater.engine.state.chunk_files import Files
from headwater.engine.state.run_files import StateRunFiles
from headwater.operators.aggregates import agg
from headwater.operators.event_time import NEVER
from headwater.operators.operator import Operator
from headwater.operators.spec import Side
from headwater.transforms import windows
from headwater.transforms.rows import dedup, latest

SCHEMA = pa.schema(
    [("k", pa.string()), ("city", pa.string()), ("v", pa.int64()), ("at", pa.timestamp("us", "UTC"))]
)
SIDE = Side(SCHEMA, "at")
OPERATORS: dict[str, Callable[[], Operator[Any]]] = {
    "latest": lambda: latest("k").build(SIDE),
    "tumbling": lambda: windows.tumbling("1 day", by="k", n=agg.count(), v=agg.sum("v")).build(SIDE),
    "dedup": lambda: dedup("k", "1 day").build(SIDE),
}
FILL, STEP, STEPS = 250_000, 1000, 15


def rows(ids: Any, at: int) -> pa.Table:
    listed = ids.tolist()
    columns = [
        pa.array([f"customer-{each}" for each in listed]),
        pa.array([f"city {each % 1000}" for each in listed]),
        pa.array(ids),
        pa.array(np.full(len(listed), at)).cast(SCHEMA.field("at").type),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


class Filled:
    """A bucket of an operator, on disk, that is stepped as a worker does."""

    def __init__(self, operator: Operator[Any], folder: Path):
        self._operator, self._cache = operator, Cache(1 << 30)
        self._bucket = Bucket(operator, SCHEMA, ("node", 0), StateRunFiles(folder, Files(folder)))
        self.meta, self.keys, self._clock = BucketMeta(), 0, 0

    def fill(self, keys: int) -> None:
        while self.keys < keys:
            ids = np.arange(self.keys, min(self.keys + FILL, keys))
            self.step(ids)
            self.keys += len(ids)

    def step(self, ids: Any, cache: Cache | None = None) -> float:
        self._clock += 1
        table = rows(ids, self._clock)
        started = time.perf_counter()
        state = self._bucket.load(self.meta, cache or self._cache).state
        done = self._operator.step(state, table, NEVER)
        self.meta = self._bucket.store(self.meta, state, done.chunk, cache or self._cache)
        return time.perf_counter() - started


def main(sizes: list[int]) -> None:
    random = np.random.default_rng(0)
    print("| operator | keys | on disk | 1,000 rows, p50 | longest | first after a restart | memory |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, make in OPERATORS.items():
        folder = Path(tempfile.mkdtemp())
        filled = Filled(make(), folder)
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
    main([int(each) for each in sys.argv[1:]] or [100_000, 1_000_000, 4_000_000])
