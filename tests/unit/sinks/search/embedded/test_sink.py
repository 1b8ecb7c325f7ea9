"""The embedded index: what is stored, what is refused, and what repeated batches come to."""

from __future__ import annotations

import sqlite3
import tempfile
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given

from headwater import Position
from headwater.errors import Fenced, RowError, SchemaError, SinkRefused, UsageError
from headwater.sinks import Batch, search
from headwater.sinks.search import SearchSink
from headwater.sinks.search.embedded import sink as module
from repeated_batches import AGAIN, BATCHES, Changes, committed, rows

COLUMNS = "id BIGINT NOT NULL, name STRING"


def opened(directory: Path) -> SearchSink:
    return SearchSink(directory, COLUMNS, "id", ["name"])


def contents(directory: Path) -> dict[int, str]:
    """Return what is stored, after SQLite has compared the words with the rows."""
    with sqlite3.connect(directory / "index.db") as db:
        db.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
        return dict(db.execute("SELECT c0, c1 FROM rows"))


def found(directory: Path, text: str) -> list[int]:
    with search.open(directory) as index:
        return sorted(row["id"] for row in index.search(text))


def test_rows_are_found_by_their_newest_words(tmp_path: Path) -> None:
    with opened(tmp_path) as sink:
        sink.begin()
        sink.commit(Batch(0, rows((1, "Ada Lovelace"), (2, "Grace Hopper"), (3, "Alan Turing"))))
        sink.commit(Batch(1, rows((1, "Ada King"), (3, None), (4, "Ada Yonath"), (9, None))))
    assert found(tmp_path, "ada") == [1, 4]
    assert found(tmp_path, "lovelace") == found(tmp_path, "turing") == []
    assert contents(tmp_path) == {1: "Ada King", 2: "Grace Hopper", 4: "Ada Yonath"}


def test_how_far_it_goes_is_stored_with_the_rows(tmp_path: Path) -> None:
    with opened(tmp_path) as sink:
        sink.begin()
        sink.commit(Batch(7, rows((1, "a")), (Position("people", {0: 5}),), 9))
        assert sink.receipt() == "7"
    with sqlite3.connect(tmp_path / "index.db") as db:
        stored = db.execute("SELECT batch, positions, clock, filled FROM search").fetchone()
    assert stored == (7, str(Position("people", {0: 5})), 9, 1)


def test_a_large_batch_is_staged_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CHUNK", 7)
    with opened(tmp_path) as sink:
        sink.begin()
        sink.commit(Batch(0, rows(*((number, f"n{number}") for number in range(100)))))
        sink.commit(Batch(1, rows(*((number, None if number % 2 else "even") for number in range(100)))))
    assert contents(tmp_path) == dict.fromkeys(range(0, 100, 2), "even")


def test_every_type_comes_back_with_a_score(tmp_path: Path) -> None:
    schema = (
        "id STRING, a DECIMAL(38,5), b ARRAY<INT>, c STRUCT<x: STRING>, d DOUBLE, e TIMESTAMP, text STRING"
    )
    row = {
        "id": "1",
        "a": Decimal("1.50000"),
        "b": [1, None],
        "c": {"x": "y"},
        "d": 2.5,
        "e": None,
        "text": "hello",
    }
    kinds = {"id": pa.string(), "a": pa.decimal128(38, 5), "b": pa.list_(pa.int32()),
             "c": pa.struct([("x", pa.string())]), "d": pa.float64(), "e": pa.timestamp("us", "UTC"),
             "text": pa.string()}  # fmt: skip
    with SearchSink(tmp_path, schema, "id", ["text"]) as sink:
        sink.begin()
        sink.commit(Batch(0, pa.table({name: pa.array([row[name]], kind) for name, kind in kinds.items()})))
    with search.open(tmp_path) as index:
        (hit,) = index.search("hello")
        assert hit.pop("_score") > 0
    assert hit == row


def test_other_columns_keys_or_words_are_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as sink:
        sink.begin()
    for schema, key, text in ((f"{COLUMNS}, n INT", "id", "name"), (COLUMNS, ("id", "name"), "name")):
        with (
            SearchSink(tmp_path, schema, key, text) as sink,
            pytest.raises(SchemaError, match="other columns"),
        ):
            sink.begin()


def test_a_file_of_something_else_and_one_that_was_emptied_are_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "index.db") as db:
        db.execute("CREATE TABLE mine (n INTEGER)")
    with opened(tmp_path) as sink, pytest.raises(SinkRefused, match="no search index"):
        sink.begin()
    with opened(tmp_path / "own") as sink:
        sink.begin()
        sink.commit(Batch(0, rows((1, "a"))))
        with sqlite3.connect(tmp_path / "own" / "index.db") as db:
            db.execute("DELETE FROM rows")
        with pytest.raises(SinkRefused, match="it is empty"):
            sink.begin()


def test_a_row_that_does_not_fit_and_a_runner_that_was_replaced_write_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as first, opened(tmp_path) as second:
        with pytest.raises(UsageError, match="not begun"):
            first.commit(Batch(0, rows()))
        first.begin()
        with pytest.raises(RowError):
            first.commit(Batch(0, pa.table({"id": pa.array([1, None], pa.int64()), "name": ["a", "b"]})))
        second.begin()
        with pytest.raises(Fenced, match="taken over"):
            first.commit(Batch(0, rows((1, "a"))))
    assert contents(tmp_path) == {}


@given(batches=BATCHES, again=AGAIN)
def test_batches_that_are_repeated_come_to_a_dictionary(batches: list[Changes], again: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder)) as sink:
        expected = committed(sink, batches, again)
        assert contents(Path(folder)) == expected
