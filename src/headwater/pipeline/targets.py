"""What ``@pipeline.sink(…)`` takes: where a node's rows go, before it is known what they look like.

@shop.sink(targets.parquet("./archive"))
def archived(orders):
    return orders

A target is written to by one runner at a time. Each batch carries its number, so one that comes again after
a crash changes nothing; only ``foreach`` cannot promise that. Rows that do not fit are refused before
anything is written, and a target that has lost rows is refused when the node starts. ``docs/sinks.md`` says
more.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

import pyarrow as pa

from headwater import durations
from headwater.names import listed
from headwater.pipeline.delivery_targets import mail as mail
from headwater.pipeline.delivery_targets import push as push
from headwater.pipeline.delivery_targets import webhook as webhook
from headwater.pipeline.sink_target import SinkTarget
from headwater.sinks.cache import declaration as caches
from headwater.sinks.foreach import ForeachSink
from headwater.sinks.parquet import ParquetSink
from headwater.sinks.search import SearchSink
from headwater.sinks.search.declaration import declare_search
from headwater.sinks.search.embedded.versions import SearchVersions
from headwater.sinks.search.opensearch import address
from headwater.sinks.search.opensearch.sink import OpenSearchSink, declare_opensearch
from headwater.sinks.search.opensearch.versions import IndexVersions
from headwater.sinks.sink import Sink
from headwater.sinks.versions import LateVersions, TargetVersions
from headwater.sinks.warehouse.declaration import declare_warehouse
from headwater.stores import limits
from headwater.stores.mysql import address as mysql_address
from headwater.values.fitting import shaped
from headwater.values.keyed import declare
from headwater.views.sqlite.store import ViewStore
from headwater.views.sqlite.table_sink import SqliteTableSink
from headwater.views.store import Store
from headwater.views.table_versions import TableVersions


def parquet(directory: str | os.PathLike[str]) -> SinkTarget:
    """Append to Parquet files in a directory, listed in a manifest.

    - ``directory``: made if it is not there; a relative one is found from where the program is now. The file
      system needs locks and atomic renames: no object store.

    Out: every row, in the order of the batches; a batch is visible whole when it is committed. Read it with
    ``headwater.sinks.parquet.read`` or ``dataset``, which go by the manifest. ``_deleted`` is a column like
    others. Small files are merged; those they replace stay for ten minutes.
    Restart: a batch that comes again is left out; a runner that was replaced is refused.

    >>> parquet("./archive").name
    'parquet'
    """
    path = os.path.abspath(directory)  # now: a program may go elsewhere
    return SinkTarget(
        "parquet",
        lambda schema: ParquetSink(path, schema),
        check=lambda schema: shaped(f'directory "{path}"', schema),
        database=os.path.realpath(path),
        tables=(path,),
    )


def postgres(dsn: str, table: str, key: str | tuple[str, ...], *, feed: int = 0) -> SinkTarget:
    """Keep a PostgreSQL table by key.

    - ``dsn``: the database: ``"postgresql://shop@db.example/shop"``. It is not shown in messages.
    - ``table``: its name, with or without a schema. It is made if it is not there; one that is needs the
      columns and a unique constraint on the key, and is never altered or dropped.
    - ``key``: the column(s) that tell rows apart.
    - ``feed=0``: how many of its last changes are kept in ``TABLE_changes``, at least; 0 for none.

    Out: one row for each key, the last one; ``_deleted`` deletes it. Rows, batch number and positions are
    committed in one transaction.
    Restart: a batch that comes again changes nothing; a runner that was replaced is refused; a broken
    connection is made anew.

    >>> postgres("postgresql://shop@db.example/shop", "stock", "item", feed=1000).tables
    ('stock', 'stock_changes')
    """

    def open(schema: pa.Schema, version: int | None = None) -> Sink:
        from headwater.views.postgres import PostgresSink

        return PostgresSink(dsn, table, schema, key, version=version, feed=feed)

    def store() -> Store:
        from headwater.views.postgres.store import PostgresStore

        return PostgresStore(dsn)

    def check(schema: pa.Schema) -> None:
        limits.check_postgres(declare(f'table "{table}"', schema, key), changes=feed > 0)

    limits.check_table_name(table)
    own = table if "search_path" in dsn else table.removeprefix("public.")
    names = (own, own + limits.CHANGES) if feed else (own,)
    versions = TableVersions(table, store, open)
    return SinkTarget(
        "postgres", open, listed(key), check, database(dsn), names, readable=True, versions=versions
    )


def mysql(url: str, table: str, key: str | tuple[str, ...]) -> SinkTarget:
    """Keep a MySQL or MariaDB table by key.

    - ``url``: the database: ``"mysql://shop@db.example/shop"``, or ``mariadb://``. It is not shown in
      messages.
    - ``table``: its name. It is made if it is not there; one that is needs the columns, and a unique key on
      ``key`` and no other, and is never altered or dropped.
    - ``key``: the column(s) that tell rows apart.

    Out: one row for each key, the last one; ``_deleted`` deletes it. Rows, batch number and positions are
    committed in one transaction.
    Restart: a batch that comes again changes nothing; a runner that was replaced is refused; a broken
    connection is made anew.

    >>> mysql("mysql://shop:secret@db.example/shop", "stock", "item").tables
    ('stock',)
    """

    def open(schema: pa.Schema) -> Sink:
        from headwater.sinks.mysql.sink import MySqlSink

        return MySqlSink(url, table, schema, key)

    def versions() -> TargetVersions:
        from headwater.sinks.mysql.versions import MySqlVersions

        return MySqlVersions(url, table, key)

    def check(schema: pa.Schema) -> None:
        limits.check_mysql(table, declare(f'table "{table}"', schema, key))

    place = mysql_address.parse(url)
    return SinkTarget(
        "mysql",
        open,
        listed(key),
        check,
        f"{place.host}:{place.port}/{place.database}",
        (table,),
        readable=True,
        versions=LateVersions(versions),
    )


def sqlite(path: str | os.PathLike[str], table: str, key: str | tuple[str, ...]) -> SinkTarget:
    """Keep a table by key in an SQLite file, which ``open_views`` reads.

    - ``path``: the file, made if it is not there; a relative one is found from where the program is now.
    - ``table``: its name.
    - ``key``: the column(s) that tell rows apart.

    Out: one row for each key, the last one; ``_deleted`` deletes it. Rows, batch number and positions are
    committed in one transaction.
    Restart: a batch that comes again changes nothing; a runner that was replaced is refused.

    >>> sqlite("shop.db", "stock", "item").key
    ('item',)
    """
    file = os.path.abspath(path)  # now: a program may go elsewhere

    def open(schema: pa.Schema, version: int | None = None) -> Sink:
        return SqliteTableSink(file, table, schema, key, version=version)

    def check(schema: pa.Schema) -> None:
        limits.check_sqlite(declare(f'view "{table}"', schema, key))

    versions = TableVersions(table, lambda: ViewStore(file), open)
    return SinkTarget(
        "sqlite", open, listed(key), check, os.path.realpath(file), (table,), readable=True, versions=versions
    )


def search(url: str, key: str | tuple[str, ...], text: str | Sequence[str]) -> SinkTarget:
    """Keep a full-text index by key: in a directory, or on an OpenSearch server.

    - ``url``: ``"file:./index"``, a directory that is made if it is not there, and found from where the
      program is now; or ``"opensearch://search.example:9200/customers"``, an index that is made if it is not
      there (one that is has to be empty). ``opensearch+https://`` is encrypted; ``elasticsearch://`` is taken
      too. A user and a password in it are not shown in messages.
    - ``key``: the column(s) that tell rows apart.
    - ``text``: the STRING column(s) whose words are searched.

    Out: one row for each key, the last one; ``_deleted`` deletes it. ``headwater.sinks.search.open`` reads a
    directory, while the pipeline writes: rows, words and batch number are committed in one transaction. A
    server has none: there rows carry versions, so that an older one never replaces a newer; the number
    follows them.
    Restart: a batch that comes again changes nothing; a runner that was replaced is refused. On a server a
    crash may leave a part of a batch visible, until the batch comes again.

    >>> search("opensearch://shop:secret@search.example:9200/customers", key="id", text=["name"]).tables
    ('customers',)
    """
    return _opensearch(url, key, text) if address.is_server(url) else _embedded(url, key, text)


def _embedded(url: str, key: str | tuple[str, ...], text: str | Sequence[str]) -> SinkTarget:
    path = os.path.abspath(url.removeprefix("file:"))  # now: a program may go elsewhere
    return SinkTarget(
        "search",
        lambda schema: SearchSink(path, schema, key, text),
        listed(key),
        lambda schema: declare_search(f'search index "{path}"', schema, key, text),
        os.path.realpath(path),
        (path,),
        readable=True,
        versions=SearchVersions(path, key, text),
    )


def _opensearch(url: str, key: str | tuple[str, ...], text: str | Sequence[str]) -> SinkTarget:
    place = address.parse(url)
    return SinkTarget(
        "search",
        lambda schema: OpenSearchSink(url, schema, key, text),
        listed(key),
        lambda schema: declare_opensearch(url, schema, key, text),
        f"{place.host}:{place.port}",
        (place.index,),
        readable=True,
        versions=IndexVersions(url, key, text),
    )


def cache(
    url: str, key: str | tuple[str, ...], *, prefix: str, ttl: str | timedelta | None = None
) -> SinkTarget:
    """Keep rows in Redis or Valkey, each as JSON text under a prefix and its key.

    - ``url``: the server: ``"redis://cache.example:6379/0"``; ``rediss://`` is encrypted. It is not shown in
      messages.
    - ``key``: the column(s) that tell rows apart.
    - ``prefix``: how the keys begin: ``"customer:"``. Nobody else writes keys that begin so.
    - ``ttl=None``: how long after it was written last a row goes by itself: ``"1 hour"``; None for never.

    Out: ``GET customer:42`` is ``{"_version":…,"id":42,"name":"Ada"}``; ``_deleted`` deletes the key. A row
    that is older than the one there never replaces it. Up to 5,000 rows and their batch number are written at
    once, by a script that the server runs; a larger batch is several of them.
    Restart: a batch that comes again changes nothing; a runner that was replaced is refused. A crash may
    leave a part of a large batch visible, until the batch comes again. A server that has lost batches is
    refused.

    >>> cache("redis://:secret@cache.example/0", key="id", prefix="customer:").tables
    ('customer:',)
    """

    def open(schema: pa.Schema) -> Sink:
        from headwater.sinks.cache.sink import CacheSink

        return CacheSink(url, schema, key, prefix=prefix, ttl=ttl)

    def check(schema: pa.Schema) -> None:
        caches.declare_cache(schema, key, prefix)

    caches.check_prefix(prefix)
    if ttl is not None:
        durations.interval(ttl)

    def versions() -> TargetVersions:
        from headwater.sinks.cache.versions import CacheVersions

        return CacheVersions(url, key, prefix, ttl)

    return SinkTarget(
        "cache",
        open,
        listed(key),
        check,
        caches.database(url),
        (prefix,),
        readable=True,
        versions=LateVersions(versions),
        by_prefix=True,
    )


def warehouse(
    directory: str | os.PathLike[str], key: str | tuple[str, ...], *, history: bool = True
) -> SinkTarget:
    """Keep a Delta Lake table by key, and what its rows were before.

    - ``directory``: made if it is not there; a relative one is found from where the program is now. The file
      system needs atomic links: no object store.
    - ``key``: the column(s) that tell rows apart.
    - ``history=True``: keep each version of a row, with ``valid_from``, ``valid_to`` and ``is_current`` (SCD
      type 2); False for the current rows alone.

    Out: with a history a row for each version that a batch has left, by the time of its commit; ``_deleted``
    ends the last one. Any tool that reads Delta reads it. A batch is one commit: rows, batch number and
    positions.
    Restart: a batch that comes again changes nothing; a runner that was replaced is refused.

    >>> warehouse("./warehouse/customers", key="id").key
    ('id',)
    """
    path = os.path.abspath(directory)  # now: a program may go elsewhere

    def open(schema: pa.Schema) -> Sink:
        from headwater.sinks.warehouse.sink import WarehouseSink

        return WarehouseSink(path, schema, key, history=history)

    def check(schema: pa.Schema) -> None:
        declare_warehouse(f'table "{path}"', schema, key, history)

    def versions() -> TargetVersions:
        from headwater.sinks.warehouse.versions import WarehouseVersions

        return WarehouseVersions(Path(path), key, history)

    return SinkTarget(
        "warehouse",
        open,
        listed(key),
        check,
        os.path.realpath(path),
        (path,),
        readable=True,
        versions=LateVersions(versions),
    )


def foreach(function: Callable[[pa.Table, int], object]) -> SinkTarget:
    """Call a function with each batch's rows and number, at least once.

    - ``function``: ``function(rows, number)`` gets an Arrow table and the number of the batch. What it raises
      stops the node, and the batch comes again.

    Out: what your function does, one batch after the other, by number.
    Restart: **the last batch may come again**, and a runner that was replaced may still call it. Keep the
    number with the result, in one transaction, and leave out a number that is there.

    >>> foreach(lambda rows, number: print(number, rows.num_rows)).name
    'foreach'
    """
    return SinkTarget("foreach", lambda schema: ForeachSink(function))


def database(url: str) -> str:
    """Return which database a connection string means, as far as it tells: not who connects to it."""
    return url.rpartition("@")[2].removeprefix("postgresql://").removeprefix("postgres://")
