"""Where the views of a pipeline are kept, for those who have the pipeline and those who have its home.

The runner notes in the home which views are elsewhere, and where, so that they are found without the
user's file. Invariant: no password is written down; who has the home only gives it in PGPASSWORD or
``~/.pgpass``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from headwater import durable
from headwater.engine.home import notes
from headwater.engine.home.stream_positions import StreamPositions
from headwater.pipeline.pipeline import Pipeline
from headwater.views.combined import CombinedStore, CombinedViews
from headwater.views.opening import open_store
from headwater.views.sqlite.store import FileViews, ViewStore
from headwater.views.store import Store, Views

STORE = "views.db"
_NOTED = "places.json"
T = TypeVar("T")


def store_of(pipeline: Pipeline) -> Store:
    """Open the views of a pipeline for its runner, and note where they are."""
    durable.make(pipeline.home, private=True)
    _note(pipeline)
    elsewhere = _opened(_urls(pipeline), open_store)
    return CombinedStore(ViewStore(pipeline.home / STORE), elsewhere, StreamPositions(pipeline.home))


def views_of(pipeline: Pipeline) -> Views:
    """Open the views of a pipeline for reading."""
    own: Views = FileViews(pipeline.home / STORE)
    return CombinedViews(own, _opened(_urls(pipeline), open_store), StreamPositions(pipeline.home))


def views_in(home: Path) -> Views:
    """Open the views of the pipeline with a home, as its runner has noted where they are."""
    own: Views = FileViews(home / STORE)
    elsewhere = _opened(notes.read(home / _NOTED) or {}, _without_password)
    return CombinedViews(own, elsewhere, StreamPositions(home))


def _urls(pipeline: Pipeline) -> dict[str, str]:
    """Return where each view is kept that is not in the pipeline's own store."""
    urls = {node.name: node.store_url(pipeline.views) for node in pipeline.nodes}
    return {name: url for name, url in urls.items() if url is not None}


def _opened(urls: Mapping[str, str], open: Callable[[str], T]) -> dict[str, T]:
    """Open each store once, however many views it has."""
    stores = {url: open(url) for url in set(urls.values())}
    return {name: stores[url] for name, url in urls.items()}


def _without_password(url: str) -> Store:
    from headwater.views.postgres import PostgresStore

    return PostgresStore(url)


def _note(pipeline: Pipeline) -> None:
    path, urls = pipeline.home / _NOTED, _urls(pipeline)
    if not urls:
        path.unlink(missing_ok=True)
        return
    from headwater.stores.postgres.connection import without_secrets

    notes.write(path, {name: without_secrets(url) for name, url in urls.items()})
