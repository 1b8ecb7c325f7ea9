"""A step of 1,000 rows while a state grows beyond the memory, and the first after a restart: what they cost.

``python -m bench.memory [OPERATOR ...] [KEYS ...]`` fills one bucket of an operator to so many keys, one
after the other. With ``--gigabytes N`` rows are wider, and a bucket is filled until it has 10 MB, 100 MB and
so on up to N GB on disk, as far as ``--minutes`` allow for each operator; the files are removed in the end.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.engine.files.local_files import LocalFiles
from headwater.engine.state.bucket import Bucket, BucketMeta
from headwater.engine.state.cache import Cache
from headwater.engine.state.chunk_files import Pack
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
WIDTH = 0
"""The characters to which a city's name is filled up: rows that are wider fill a disk sooner."""


def texts(lead: str, numbers: Any, width: int = 0) -> pa.Array:
    joined = pc.binary_join_element_wise(lead, pa.array(numbers).cast(pa.string()), "")
    return pc.utf8_rpad(joined, width, ".") if width else joined


def rows(ids: Any, at: int) -> pa.Table:
    columns = [
        texts("customer-", ids),
        texts("city ", ids % 1000, WIDTH),
        pa.array(ids),
        pa.array(np.full(len(ids), at)).cast(SCHEMA.field("at").type),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def changes(ids: Any, at: int) -> pa.Table:
    """Changes of customers, of whom ten live in each city."""
    known = rows(ids, at).set_column(1, "city", texts("city ", ids // 10, WIDTH))
    known = known.set_column(2, "v", pa.array(ids + at))
    return known.append_column(CHANGES.field("_deleted"), pa.repeat(False, len(ids)))


def both(ids: Any, at: int) -> pa.Table:
    """Changes of customers, and to one of ten the city of a customer: ten results change with it."""
    cities = np.unique(ids[::10] // 10)
    columns = [texts("city ", cities, WIDTH), texts(f"region of {at}: ", cities % 100)]
    right = pa.Table.from_arrays([*columns, pa.repeat(False, len(cities))], schema=CITIES)
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
        self._files = LocalFiles(folder)
        self.meta, self.keys, self._clock = BucketMeta(), 0, 0

    def fill(self, keys: float, size: float, until: float) -> None:
        """Add keys until there are so many, or so many bytes, or it is too late."""
        while self.keys < keys and self.meta.size < size and time.perf_counter() < until:
            count = FILL if size > 1e8 else FILL // 10  # the last step is not to go far beyond a small size
            ids = np.arange(self.keys, min(self.keys + count, keys), dtype=np.int64)
            self.step(ids)
            self.keys += len(ids)
            # As the engine does: files that no manifest names would push others out of the page cache.
            self._files.remove(set(self._files.sizes()) - {each.file for each in self.meta.stored})

    def step(self, ids: Any, cache: Cache | None = None) -> Took:
        self._clock += 1
        table = self._measured.rows(ids, self._clock)
        cache = self._cache if cache is None else cache  # one that is empty counts as false
        started = Took(time.perf_counter(), time.process_time())
        pack = Pack(self._files)
        files = StateRunFiles(self._files, pack)
        bucket = Bucket(self._operator, self._measured.schema, ("node", 0), files)
        state = bucket.load(self.meta, cache).state
        self._operator.step(state, table, self._clock if self._measured.waits else NEVER)
        self.meta = bucket.store(self.meta, state, cache)
        pack.write()
        return Took(time.perf_counter() - started.wall, time.process_time() - started.processor)


class Took(NamedTuple):
    """Seconds."""

    wall: float
    processor: float


def own_memory() -> float:
    """Return the megabytes of this process that are its own: pages of mapped files are the system's."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) / 1024


def measure(name: str, filled: Filled) -> None:
    random, before = np.random.default_rng(0), resource.getrusage(resource.RUSAGE_SELF)
    took = [filled.step(random.integers(0, filled.keys, STEP)) for _ in range(STEPS)]
    memory, after = own_memory(), resource.getrusage(resource.RUSAGE_SELF)
    faults = (after.ru_majflt - before.ru_majflt) / STEPS
    first = filled.step(random.integers(0, filled.keys, STEP), Cache(1 << 30))
    p50, processor = (1e3 * float(np.median(each)) for each in zip(*took, strict=True))
    print(
        f"| {name} | {filled.keys:,} | {filled.meta.size / 1e6:,.0f} MB | {p50:.1f} ms | {processor:.1f} ms "
        f"| {1e3 * max(took).wall:.0f} ms | {1e3 * first.wall:.0f} ms | {memory:,.0f} MB "
        f"| {faults:,.0f} |",
        flush=True,
    )


def main(given: argparse.Namespace) -> None:
    global WIDTH
    sizes = [int(each) for each in given.names if each.isdigit()] or SIZES
    goals = [(keys, np.inf) for keys in sizes]
    if given.gigabytes:
        WIDTH = given.width
        tens = [10.0**n for n in range(7, 13) if 10.0**n < 1e9 * given.gigabytes]
        goals = [(np.inf, size) for size in (*tens, 1e9 * given.gigabytes)]
    titles = "operator keys on_disk 1,000_rows processor longest after_a_restart own_memory pages_read"
    print("|", " | ".join(titles.split()).replace("_", " "), "|")
    print("|", " | ".join("---" for _ in titles.split()), "|")
    for name in [each for each in given.names if not each.isdigit()] or OPERATORS:
        folder = Path(tempfile.mkdtemp())
        filled, until = Filled(OPERATORS[name], folder), time.perf_counter() + 60 * given.minutes
        try:
            for keys, size in goals:
                filled.fill(keys, size, until)
                measure(name, filled)
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", help="operators, and numbers of keys")
    parser.add_argument("--gigabytes", type=float, default=0)
    parser.add_argument("--width", type=int, default=400, help="characters of a city's name")
    parser.add_argument("--minutes", type=float, default=np.inf, help="time to fill in, of each operator")
    main(parser.parse_args())
