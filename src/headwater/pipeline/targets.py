"""What ``@pipeline.sink(…)`` takes: where a node's rows go, before it is known what they look like.

@shop.sink(parquet("./archive"))
def archived(orders):
    return orders
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from headwater.sinks.foreach import ForeachSink
from headwater.sinks.parquet import ParquetSink
from headwater.sinks.sink import Sink
from headwater.sinks.together import Together
from headwater.stores import limits
from headwater.values.fitting import shaped
from headwater.values.keyed import declare
from headwater.views.sqlite.store import ViewStore

_VERSION = re.compile(r"(.+)@\d+(?:_changes)?")
"""The table of a view's version, or of its changes."""


class TableName(NamedTuple):
    """A table, a file or a directory, and the database or path that holds it."""

    database: str
    name: str


@dataclass(frozen=True)
class SinkTarget:
    """A sink that waits for its columns."""

    name: str
    open: Callable[[pa.Schema], Sink] = field(repr=False)
    """Makes the sink; what it closes over may be secret, so it is not shown."""
    key: tuple[str, ...] = ()
    """By what a row replaces an earlier one, if it does."""
    check: Callable[[pa.Schema], object] = field(default=lambda schema: None, repr=False)
    """Refuses columns that it cannot take, without connecting to anything."""
    database: str | None = field(default=None, repr=False)
    """The database, file or directory, if it is one."""
    tables: tuple[str, ...] = ()
    """What it writes to there."""

    def table_names(self) -> list[TableName]:
        """Return what it writes to; one who writes to a view's version writes to the view."""
        if self.database is None:
            return []
        views = [found[1] for name in self.tables if (found := _VERSION.fullmatch(name))]
        return [TableName(self.database, name) for name in (*self.tables, *views)]


def parquet(directory: str | os.PathLike[str]) -> SinkTarget:
    """Append to Parquet files in a directory; ``headwater.sinks.parquet.read`` reads whole batches."""
    path = os.path.abspath(directory)  # now: a program may go elsewhere
    return SinkTarget(
        "parquet",
        lambda schema: ParquetSink(path, schema),
        check=lambda schema: shaped(f'directory "{path}"', schema),
        database=os.path.realpath(path),
        tables=(path,),
    )


def postgres(dsn: str, table: str, key: str | tuple[str, ...], *, feed: int = 0) -> SinkTarget:
    """Keep a PostgreSQL table by key, and at least the last ``feed`` of its changes."""

    def open(schema: pa.Schema) -> Sink:
        from headwater.views.postgres import PostgresSink

        return PostgresSink(dsn, table, schema, key, feed=feed)

    def check(schema: pa.Schema) -> None:
        limits.check_postgres(declare(f'table "{table}"', schema, key), changes=feed > 0)

    limits.check_table_name(table)
    own = table if "search_path" in dsn else table.removeprefix("public.")
    names = (own, own + limits.CHANGES) if feed else (own,)
    return SinkTarget("postgres", open, _names(key), check, database(dsn), names)


def sqlite(path: str | os.PathLike[str], table: str, key: str | tuple[str, ...]) -> SinkTarget:
    """Keep a table by key in an SQLite file, which ``open_views`` reads."""
    file = os.path.abspath(path)  # now: a program may go elsewhere

    def open(schema: pa.Schema) -> Sink:
        store = ViewStore(file)
        try:
            return Together(store.sink(table, schema, key), store)
        except BaseException:
            store.close()
            raise

    def check(schema: pa.Schema) -> None:
        limits.check_sqlite(declare(f'view "{table}"', schema, key))

    return SinkTarget("sqlite", open, _names(key), check, os.path.realpath(file), (table,))


def foreach(function: Callable[[pa.Table, int], object]) -> SinkTarget:
    """Call a function with each batch's rows and number, at least once."""
    return SinkTarget("foreach", lambda schema: ForeachSink(function))


def database(url: str) -> str:
    """Return which database a connection string means, as far as it tells: not who connects to it."""
    return url.rpartition("@")[2].removeprefix("postgresql://").removeprefix("postgres://")


def _names(key: str | tuple[str, ...]) -> tuple[str, ...]:
    return (key,) if isinstance(key, str) else tuple(key)
