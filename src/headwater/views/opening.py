"""Which store a text means: the URL of a PostgreSQL database, or the path of a SQLite file."""

from __future__ import annotations

import os

from headwater.errors import UsageError
from headwater.views.store import Store, Views

SCHEMES = ("postgresql", "postgres")


def open_views(location: str | os.PathLike[str]) -> Views:
    """Open views for reading, from any process: those of a SQLite file, or of a PostgreSQL database.

    >>> import tempfile, pyarrow as pa
    >>> from headwater.sinks import Batch
    >>> from headwater.views import ViewStore
    >>> path = tempfile.mkdtemp() + "/views.db"
    >>> with ViewStore(path) as store, store.sink("stock", "item STRING, count BIGINT", "item") as sink:
    ...     _ = sink.begin()
    ...     _ = sink.commit(Batch(0, pa.table({"item": ["tea", "rum"], "count": [3, 1]})))
    >>> with open_views(path) as views:
    ...     views["stock"].scan(order="count").to_pylist()
    [{'item': 'rum', 'count': 1}, {'item': 'tea', 'count': 3}]
    """
    if isinstance(location, str) and "://" in location:
        return open_store(location)
    from headwater.views.sqlite.store import FileViews

    return FileViews(location)


def open_store(url: str) -> Store:
    """Open the store of a URL; nothing is connected to before it is used."""
    check_store(url)
    from headwater.views.postgres import PostgresStore

    return PostgresStore(url)


def check_store(url: object) -> None:
    """Refuse what is no URL of a store; the URL itself may hold a password, and is not shown."""
    scheme, separator, _ = url.partition("://") if isinstance(url, str) else ("", "", "")
    if separator and scheme in SCHEMES:
        return
    problem = f'a view store cannot be "{scheme}:"' if separator else "a view store is named by its URL"
    raise UsageError(problem, hint='write it as "postgresql://user@host:5432/database"')
