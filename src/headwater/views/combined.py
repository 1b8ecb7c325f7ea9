"""The views of one pipeline, whichever store each of them is in, as one.

Invariant: a view is looked for in its own store only, so one that was moved is not read where it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Generic, TypeVar

from headwater.sinks.sink import Sink
from headwater.values.keyed import KeyedSchema
from headwater.views.reading import Reading
from headwater.views.store import Store, Views
from headwater.views.wait import UpstreamPositions

S = TypeVar("S", bound=Views)


class CombinedViews(Views, Generic[S]):
    """Views that are kept in one store, but for those that are named with another."""

    def __init__(self, default: S, elsewhere: Mapping[str, S], upstream: UpstreamPositions | None = None):
        self._default, self._elsewhere, self.upstream = default, elsewhere, upstream

    def names(self) -> list[str]:
        """Return the names of all views that are there."""
        present = {store: set(store.names()) for store in {*self._elsewhere.values()}}
        named = [name for name, store in self._elsewhere.items() if name in present[store]]
        return sorted([*named, *(name for name in self._default.names() if name not in self._elsewhere)])

    def reading(self, name: str, version: int | None) -> AbstractContextManager[Reading]:
        """Lend a connection on which a view, or one version of it, is read."""
        return self.of(name).reading(name, version)

    def versions(self, view: str) -> dict[int, bool]:
        """Return the versions of a view, and whether each is the published one."""
        return self.of(view).versions(view)

    def of(self, name: str) -> S:
        """Return the store of a view."""
        return self._elsewhere.get(name, self._default)

    def close(self) -> None:
        """Close all stores."""
        for store in {self._default, *self._elsewhere.values()}:
            store.close()


class CombinedStore(CombinedViews[Store], Store):
    """The same, for the runner that writes them."""

    def open_sink(self, view: str, keyed: KeyedSchema, version: int | None, feed: int) -> Sink:
        """Return the sink of a view, which is made if it is not there."""
        return self.of(view).open_sink(view, keyed, version, feed)

    def index_by(self, view: str, order: str | None, *, version: int | None = None) -> None:
        """Index a version by a column, within the leading columns of its key; None drops the index."""
        self.of(view).index_by(view, order, version=version)

    def publish(self, view: str, version: int) -> None:
        """Let readers see a version from now on, and no longer the one before."""
        self.of(view).publish(view, version)

    def drop(self, view: str, version: int | None = None) -> None:
        """Remove a version that is not published, or the whole view if no version is named."""
        self.of(view).drop(view, version)
