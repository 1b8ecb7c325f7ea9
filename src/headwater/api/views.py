"""The views of pipelines, for everyone who reads: opened by pipeline, by place, or found beside a log."""

from __future__ import annotations

import os
from pathlib import Path

from headwater.engine.home.view_locations import STORE, views_in, views_of
from headwater.pipeline.loading import load
from headwater.pipeline.pipeline import Pipeline
from headwater.views import opening
from headwater.views.store import Views
from headwater.views.view import TIMEOUT as TIMEOUT

_PREFIX = "headwater-"
"""Begins the directory of a pipeline whose log is not a directory."""


def open_views(location: Pipeline | str | os.PathLike[str]) -> Views:
    """Open views for reading, from any process, whether the pipeline runs or not.

    ``location`` is a pipeline or the path of its file (``shop.py``), the directory of a pipeline, an SQLite
    file of views, or the URL of a PostgreSQL database. A pipeline knows the passwords of its stores too; of a
    directory they are in ``PGPASSWORD`` or ``~/.pgpass``.

    >>> import headwater, tempfile, pyarrow as pa
    >>> from headwater.sinks import Batch
    >>> from headwater.views import ViewStore
    >>> home = tempfile.mkdtemp()
    >>> with ViewStore(home + "/views.db") as store:
    ...     with store.sink("stock", "item STRING, count BIGINT", "item") as sink:
    ...         _ = sink.begin()
    ...         _ = sink.commit(Batch(0, pa.table({"item": ["tea"], "count": [3]})))
    >>> with headwater.open_views(home) as views:
    ...     views["stock"].get("tea")
    {'item': 'tea', 'count': 3}
    """
    if isinstance(location, Pipeline):
        return views_of(location)
    text = os.fspath(location)
    if "://" in text:
        return opening.open_views(text)
    if os.path.isdir(text):
        return views_in(Path(text))
    return views_of(load(text)) if text.endswith(".py") or ".py:" in text else opening.open_views(text)


def has_views(home: Path) -> bool:
    """Tell whether a directory is that of a pipeline with views."""
    return (home / STORE).is_file()


def homes_below(directory: Path) -> list[Path]:
    """Return the directories of pipelines with views that lie below a directory, or below a log."""
    stores = [*directory.glob(f"*/{STORE}"), *directory.glob(f"pipelines/*/{STORE}")]
    return [store.parent for store in sorted(stores)]


def homes_beside(url: str) -> dict[str, Path]:
    """Return the directories of all pipelines of a log that have views, by the pipeline's name."""
    scheme, _, rest = url.partition(":")
    if scheme == "file":
        stores = Path(rest.removeprefix("//")).glob(f"pipelines/*/{STORE}")
    else:
        stores = Path().glob(f"{_PREFIX}*/{STORE}")
    return {store.parent.name.removeprefix(_PREFIX): store.parent for store in sorted(stores)}
