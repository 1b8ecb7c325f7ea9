"""A table in an SQLite file: nothing is made before its sink begins. The suite is in tests/unit/sinks."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from headwater.errors import UsageError
from headwater.sinks import Batch
from headwater.views.sqlite.table_sink import SqliteTableSink

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string())])


def test_reading_what_is_not_there_makes_nothing(tmp_path: Path) -> None:
    with SqliteTableSink(tmp_path / "shop.db", "people", COLUMNS, "id") as sink:
        contents = sink.read_back()
        assert (contents.batch, list(contents.rows)) == (-1, [])
        with pytest.raises(UsageError, match="has not begun"):
            sink.commit(Batch(0, COLUMNS.empty_table()))
    assert not list(tmp_path.iterdir())


def test_a_table_that_is_not_in_the_file_holds_nothing(tmp_path: Path) -> None:
    with SqliteTableSink(tmp_path / "shop.db", "people", COLUMNS, "id") as sink:
        sink.begin()
    with SqliteTableSink(tmp_path / "shop.db", "others", COLUMNS, "id") as sink:
        assert sink.read_back().batch == -1


def test_a_sink_that_was_closed_can_begin_again(tmp_path: Path) -> None:
    sink = SqliteTableSink(tmp_path / "shop.db", "people", COLUMNS, "id")
    sink.begin()
    assert sink.commit(Batch(0, pa.table({"id": [1], "name": ["ada"]})))
    sink.close()
    assert (sink.begin(), sink.receipt(), sink.resume("0")) == (0, "0", None)
    sink.close()
