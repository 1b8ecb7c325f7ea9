"""Reading an embedded index, in any process, while its pipeline writes.

Invariant: an answer comes from one state of the index, which is the result of whole batches.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from headwater.closing import Closing
from headwater.errors import UsageError
from headwater.sinks.search.embedded.query import expression
from headwater.sinks.search.embedded.tables import KIND, SearchProgress, SearchTables, file_of, progress
from headwater.sinks.sink import Contents
from headwater.stores.sqlite import values
from headwater.stores.sqlite.connection import SqliteReaders

SCORE = "_score"
_ROWS = 8192


class SearchIndex(Closing):
    """An index, for reading; any thread may use it."""

    def __init__(self, directory: str | os.PathLike[str]):
        self._directory = Path(os.fspath(directory).removeprefix("file:"))
        self._readers = SqliteReaders(file_of(self._directory), KIND)

    @property
    def schema(self) -> pa.Schema:
        """The columns of its rows."""
        with self._snapshot() as (_, reached):
            return reached.schema(self._what).schema

    @property
    def batch(self) -> int:
        """The number of the last batch it has."""
        with self._snapshot() as (_, reached):
            return reached.batch

    def count(self) -> int:
        """Return the number of rows."""
        with self._snapshot() as (db, reached):
            tables = SearchTables(reached.schema(self._what), reached.version)
            return int(db.execute(tables.count).fetchone()[0])

    def search(self, text: str, *, limit: int = 10) -> list[dict[str, Any]]:
        """Return the rows that fit a text best, the best first, each with its ``_score`` (BM25).

        - ``text``: words, all of which are to be there: ``ada lovelace``; ``"ada lovelace"``, ``ada OR
          grace``, ``love*``, ``-king`` and ``name:ada`` mean what they do elsewhere. A text without a word,
          or with a quote that is not closed, is a ``UsageError``.
        - ``limit=10``: how many rows at most.
        """
        if not isinstance(limit, int) or limit < 1:
            raise UsageError(f"limit is a number of rows from 1 on, not {limit!r:.40}")
        with self._snapshot() as (db, reached):
            tables = SearchTables(reached.schema(self._what), reached.version)
            searched = {name: tables.names[name] for name in tables.declared.text}
            rows = db.execute(tables.search, (expression(text, searched), limit)).fetchall()
        return _decoded(rows, tables.declared.schema)

    def close(self) -> None:
        """Close the connections that are not in use."""
        self._readers.close()

    @property
    def _what(self) -> str:
        return f'search index "{self._directory}"'

    @contextmanager
    def _snapshot(self) -> Iterator[tuple[sqlite3.Connection, SearchProgress]]:
        with self._readers.snapshot() as db:
            reached = progress(db)
            if reached is None:
                raise UsageError(f"{self._what} holds nothing yet", hint="run its pipeline first")
            yield db, reached


def open(directory: str | os.PathLike[str]) -> SearchIndex:
    """Open the index that a pipeline keeps in a directory, for reading.

    >>> import tempfile
    >>> open(tempfile.mkdtemp())  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    headwater.errors.UsageError: no search index at "…"
    """
    return SearchIndex(directory)


def contents(directory: Path, version: int) -> Contents:
    """Return what a version of an index holds, for comparing: the rows, not their words."""
    if not file_of(directory).exists():
        return Contents()
    readers, opened = SqliteReaders(file_of(directory), KIND), ExitStack()
    opened.callback(readers.close)
    try:
        db = opened.enter_context(readers.snapshot())
        reached = progress(db, version) or SearchProgress("", "", "")
    except BaseException:
        opened.close()
        raise
    return Contents(reached.batch, _all_rows(db, reached, directory, opened))


def _all_rows(
    db: sqlite3.Connection, reached: SearchProgress, directory: Path, opened: ExitStack
) -> Iterator[pa.RecordBatch]:
    with opened:
        if not reached.columns:  # no runner has begun
            return
        tables = SearchTables(reached.schema(f'search index "{directory}"'), reached.version)
        cursor, schema = db.execute(tables.all), tables.declared.schema
        while rows := cursor.fetchmany(_ROWS):
            columns = zip(zip(*rows, strict=True), schema, strict=True)
            decoded = [values.decode(column, field) for column, field in columns]
            yield pa.RecordBatch.from_arrays(decoded, schema.names)


def _decoded(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> list[dict[str, Any]]:
    if not rows:
        return []
    *columns, scores = zip(*rows, strict=True)
    decoded = [values.decode(column, field) for column, field in zip(columns, schema, strict=True)]
    table = pa.Table.from_arrays([*decoded, pa.array(scores, pa.float64())], names=[*schema.names, SCORE])
    return list(table.to_pylist())
