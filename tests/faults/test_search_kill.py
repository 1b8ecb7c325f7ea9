"""An embedded index whose writer is killed, as ``kill -9`` does, in the middle of large batches."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from headwater.sinks import Batch, search
from headwater.sinks.search import SearchSink

pytestmark = pytest.mark.faults
ROWS, KEYS, KILLS = 3_000, 9_000, 12


def batch(number: int) -> Batch:
    """Return rows of which a tenth are deletions; each names its batch."""
    keys = [(number * 1_009 + place * 7) % KEYS for place in range(ROWS)]
    columns = {"id": keys, "name": [f"word{key % 50} batch{number}" for key in keys],
               "_deleted": [(key + number) % 10 == 0 for key in keys]}  # fmt: skip
    return Batch(number, pa.table(columns))


def expected(last: int) -> dict[int, str]:
    rows: dict[int, str] = {}
    for number in range(last + 1):
        for row in batch(number).rows.to_pylist():
            if row["_deleted"]:
                rows.pop(row["id"], None)
            else:
                rows[row["id"]] = row["name"]
    return rows


def write(directory: Path) -> None:
    with SearchSink(directory, "id BIGINT, name STRING", "id", ["name"]) as sink:
        last = sink.begin()
        for number in range(max(last, 0), 10_000):
            assert sink.commit(batch(number)) == (number > last)


def killed_after(directory: Path, seconds: float) -> None:
    child = os.fork()
    if child == 0:
        try:
            write(directory)
        finally:
            os._exit(1)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])


def test_what_is_found_is_the_result_of_whole_batches(tmp_path: Path) -> None:
    chance, last = random.Random(11), -1
    with SearchSink(tmp_path, "id BIGINT, name STRING", "id", ["name"]) as sink:
        sink.begin()
    for _ in range(KILLS):
        killed_after(tmp_path, chance.uniform(0.05, 0.7))
        with search.open(tmp_path) as index:
            hits = {row["id"]: row["name"] for row in index.search("word*", limit=KEYS)}
            assert index.batch >= last
            last = index.batch
        assert hits == expected(last)
        with closing(sqlite3.connect(tmp_path / "index.db")) as db:
            db.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
    assert last > 3
