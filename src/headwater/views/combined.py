"""The views of one pipeline, wherever each of them is kept, as one store.

Invariant: a view is looked for in its own place only, so one that was moved is not read where it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

import pyarrow as pa

from headwater.sinks.sink import Sink
from headwater.views.store import Store, Views
from headwater.views.view import View
from headwater.views.view_version import KEPT_CHANGES

S = TypeVar("S", bound=Views)


class CombinedViews(Views, Generic[S]):
    """Views that are kept in a pipeline's own store, but for those that are named."""

    def __init__(self, own: S, elsewhere: Mapping[str, S]):
        self._own, self._elsewhere = own, elsewhere

    def names(self) -> list[str]:
        """Return the names of all views that are there."""
        found = {store: set(store.names()) for store in {*self._elsewhere.values()}}
        there = [name for name, store in self._elsewhere.items() if name in found[store]]
        return sorted([*there, *(name for name in self._own.names() if name not in self._elsewhere)])

    def view(self, name: str, version: int | None = None) -> View:
        """Return a view: what is published, or one version of it."""
        return self.of(name).view(name, version)

    def versions(self, view: str) -> dict[int, bool]:
        """Return the versions of a view, and whether each is the published one."""
        return self.of(view).versions(view)

    def of(self, name: str) -> S:
        """Return the store of a view."""
        return self._elsewhere.get(name, self._own)

    def close(self) -> None:
        """Close all stores."""
        for store in {self._own, *self._elsewhere.values()}:
            store.close()


class CombinedStore(CombinedViews[Store], Store):
    """The same, for the runner that writes them."""

    def sink(
        self,
        view: str,
        schema: str | pa.Schema,
        key: str | tuple[str, ...],
        *,
        version: int | None = None,
        feed: int = KEPT_CHANGES,
    ) -> Sink:
        """Return the sink of a view, which is made if it is not there."""
        return self.of(view).sink(view, schema, key, version=version, feed=feed)

    def arrange(self, view: str, order: str | None, *, version: int | None = None) -> None:
        """Keep a version in the order of a column too, within the leading columns of its key."""
        self.of(view).arrange(view, order, version=version)

    def publish(self, view: str, version: int) -> None:
        """Let readers see a version from now on, and no longer the one before."""
        self.of(view).publish(view, version)

    def drop(self, view: str, version: int | None = None) -> None:
        """Remove a version that is not published, or the whole view if no version is named."""
        self.of(view).drop(view, version)
