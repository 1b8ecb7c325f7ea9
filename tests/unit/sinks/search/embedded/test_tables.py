"""The tables of an index, and how it is recognised."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from headwater.errors import SinkRefused
from headwater.sinks.search.declaration import declare_search
from headwater.sinks.search.embedded.tables import KIND, SearchTables, progress

DECLARED = declare_search("index", "rank BIGINT, `rowid` STRING, text STRING", ("rowid", "rank"), ["text"])


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    with sqlite3.connect(":memory:") as opened:
        opened.executescript(KIND.tables)
        SearchTables(DECLARED).create(opened)
        yield opened


def test_what_an_index_holds_is_known_from_the_file(db: sqlite3.Connection) -> None:
    reached = progress(db)
    assert reached is not None
    assert (reached.batch, reached.epoch, reached.filled) == (-1, 0, 0)
    assert reached.schema("index") == DECLARED


def test_a_table_that_is_gone_or_empty_is_refused(db: sqlite3.Connection) -> None:
    tables = SearchTables(DECLARED)
    tables.check(db, filled=False)
    with pytest.raises(SinkRefused, match="lost what it held"):
        tables.check(db, filled=True)
    db.execute("DROP TABLE words")
    with pytest.raises(SinkRefused, match='"words" is gone'):
        tables.check(db, filled=False)
