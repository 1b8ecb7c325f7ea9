"""Reading an index: from any process, while it is written."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest

from headwater.errors import UsageError
from headwater.sinks import Batch, search
from headwater.sinks.search import SearchSink
from headwater.sinks.search.embedded.tables import KIND, file_of
from headwater.stores.sqlite.connection import Writer


def opened(directory: Path) -> SearchSink:
    return SearchSink(directory, "id BIGINT, name STRING", "id", ["name"])


def rows(first: int, name: str, count: int = 10) -> pa.Table:
    return pa.table({"id": range(first, first + count), "name": [name] * count})


def test_the_best_come_first_and_no_more_than_asked_for(tmp_path: Path) -> None:
    table = pa.table({"id": [1, 2, 3], "name": ["tea and rum and milk", "tea", "rum"]})
    with opened(tmp_path) as sink:
        sink.begin()
        sink.commit(Batch(0, table))
    with search.open(f"file:{tmp_path}") as index:
        assert [row["id"] for row in index.search("tea")] == [2, 1]
        assert [row["id"] for row in index.search("tea", limit=1)] == [2]
        assert index.search("coffee") == []
        assert (index.count(), index.batch, index.schema.names) == (3, 0, ["id", "name"])


def test_bad_questions_are_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no search index"):
        search.open(tmp_path)
    Writer(file_of(tmp_path), "fsync", KIND).close()
    with search.open(tmp_path) as index, pytest.raises(UsageError, match="holds nothing yet"):
        index.search("tea")
    with opened(tmp_path) as sink:
        sink.begin()
    with search.open(tmp_path) as index:
        for text, limit in (("", 10), ('"tea', 10), ("tea", 0), ("tea", True - 1)):
            with pytest.raises(UsageError):
                index.search(text, limit=limit)


def test_a_reader_sees_whole_batches_while_they_are_written(tmp_path: Path) -> None:
    done = threading.Event()

    def write() -> None:
        with opened(tmp_path) as sink:
            sink.begin()
            for number in range(40):
                sink.commit(Batch(number, rows(10 * (number % 5), f"round{number}", 10)))
        done.set()

    with opened(tmp_path) as sink:
        sink.begin()
    writer = threading.Thread(target=write)
    writer.start()
    seen = set()
    with search.open(tmp_path) as index:
        while not done.is_set():
            hits = index.search("round*", limit=1000)
            seen.add(len(hits) % 10)
        writer.join()
        assert len(index.search("round*", limit=1000)) == 50
    assert seen <= {0}
