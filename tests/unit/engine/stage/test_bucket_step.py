"""A step of a bucket: rows judged by the watermark from before, and repeated without a difference."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa

from headwater.engine.files.local_files import LocalFiles
from headwater.engine.stage.bucket_step import StepContext, step_in_driver
from headwater.operators.dedup import Dedup
from headwater.operators.event_time import NEVER

SCHEMA = pa.schema([("id", pa.string()), ("at", pa.timestamp("us", "UTC"))])
DEDUP = Dedup(on=("id",), within=timedelta(microseconds=10), event_time="at")


def rows(*events: tuple[str, int]) -> pa.Table:
    return pa.table([[name for name, _ in events], [at for _, at in events]], schema=SCHEMA)


def context(home: Path) -> StepContext:
    return StepContext("node", DEDUP, SCHEMA, LocalFiles(home), count=8)


def test_a_row_is_not_late_because_of_one_that_was_read_with_it(tmp_path: Path) -> None:
    work = replace(context(tmp_path), before=NEVER, now=1_000)
    done = work.step({0: rows(("new", 1_000), ("old", 1))})[0]
    assert sum(table.num_rows for table in done.out) == 2
    assert done.late == []


def test_a_row_from_before_the_watermark_is_late(tmp_path: Path) -> None:
    work = replace(context(tmp_path), before=1_000, now=1_000)
    done = work.step({0: rows(("new", 1_000), ("old", 1))})[0]
    assert [table["id"].to_pylist() for table in done.late] == [["old"]]


def test_a_step_that_is_repeated_gives_the_same_again(tmp_path: Path) -> None:
    first = context(tmp_path).step({0: rows(("a", 1))})[0]
    later = replace(context(tmp_path), buckets={0: first.meta})
    once, again = (later.step({0: rows(("a", 2), ("b", 2))})[0] for _ in range(2))
    assert [table.to_pylist() for table in once.out] == [table.to_pylist() for table in again.out]
    assert once.duplicates == again.duplicates == 1


def test_every_row_goes_to_the_bucket_of_its_key(tmp_path: Path) -> None:
    events = rows(*((f"k{number}", 1) for number in range(40)))
    done = step_in_driver(context(tmp_path), events)
    assert sum(each.rows for each in done) == 40
    again = step_in_driver(context(tmp_path), events)
    assert [(each.bucket, each.rows) for each in done] == [(each.bucket, each.rows) for each in again]
    assert len(done) > 1
