"""The rows of a repeated batch in any order: each of them once, wherever its first attempt had ended."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.log.embedded import EmbeddedLog
from headwater.sinks import Batch
from headwater.sinks.row_order import replay_order
from headwater.sinks.topic import TopicSink
from headwater.topic import create
from soaking import examples

PARTITIONS = 3
SCHEMA = "k STRING, n BIGINT, x DOUBLE, tags ARRAY<STRING>"
TYPES = pa.schema(
    [("k", pa.string()), ("n", pa.int64()), ("x", pa.float64()), ("tags", pa.list_(pa.string()))]
)
ROW = st.fixed_dictionaries(
    {
        "k": st.sampled_from("abcdefg"),
        "n": st.none() | st.integers(0, 3),
        "x": st.sampled_from([0.0, -0.0, 1.5, float("inf"), None]),
        "tags": st.none() | st.lists(st.sampled_from(["x", "y"]), max_size=2),
    }
)


def table(rows: list[dict[str, Any]], deleted: list[bool] | None) -> pa.Table:
    made = pa.Table.from_pylist(rows, schema=TYPES)
    return made if deleted is None else made.append_column("_deleted", pa.array(deleted, pa.bool_()))


def commit(path: Path, rows: pa.Table) -> None:
    with EmbeddedLog(path) as log, TopicSink(log, "rows", "node") as sink:
        sink.begin()
        sink.commit(Batch(7, rows))


def stored(path: Path) -> Counter[str]:
    with EmbeddedLog(path) as log:
        return Counter(repr(row) for batch in log.read("rows") for row in batch.to_pylist())


def with_only(path: Path, rows: pa.Table, reached: set[int]) -> None:
    """Commit, and then leave the batch in some partitions only, as a process that died in between would."""
    shutil.copytree(path, path.with_name("before"))
    commit(path, rows)
    for partition in set(range(PARTITIONS)) - reached:
        for place in path.glob(f"topics/rows*/{partition}"):
            shutil.rmtree(place)
            shutil.copytree(path.with_name("before") / place.relative_to(path), place)


@examples(25)
@given(
    rows=st.lists(ROW, min_size=1, max_size=12),
    shape=st.sampled_from(["without a key", "with a key", "compacted"]),
    reached=st.sets(st.integers(0, PARTITIONS - 1)),
    data=st.data(),
)
def test_a_batch_that_comes_again_in_another_order_has_each_row_once(
    rows: list[dict[str, Any]], shape: str, reached: set[int], data: st.DataObject
) -> None:
    key = None if shape == "without a key" else "k"
    marks = [data.draw(st.booleans()) for _ in rows] if shape == "compacted" else None
    again = data.draw(st.permutations(range(len(rows))))
    with tempfile.TemporaryDirectory() as directory:
        path, whole = Path(directory) / "log", Path(directory) / "whole"
        for place in (path, whole):
            with EmbeddedLog(place) as log:
                cleanup = "compact" if shape == "compacted" else "delete"
                log.create_topic("rows", SCHEMA, key=key, partitions=PARTITIONS, cleanup=cleanup)
        first = table(rows, marks)
        with_only(path, first, reached)
        commit(path, first.take(again))
        commit(whole, first)
        assert stored(path) == stored(whole)


@given(st.lists(ROW, min_size=2, max_size=20))
def test_rows_of_one_key_keep_their_order(rows: list[dict[str, Any]]) -> None:
    topic = create("rows", SCHEMA, key="k", partitions=PARTITIONS)
    made = replay_order(table(rows, None), topic).to_pylist()
    for key in "abcdefg":
        before, after = ([row for row in some if row["k"] == key] for some in (rows, made))
        assert after == before
