"""What a store of views does, wherever it keeps them: read them, write them, in one or more versions.

A rebuild writes version n+1 beside n, while readers go on with n, and then the two change places.
Invariant: a switch of versions is one transaction, so no reader sees a view half rebuilt; a version
that was dropped does not come back.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from contextlib import AbstractContextManager
from functools import partial
from typing import TypeVar

import pyarrow as pa

from headwater import topic as topics
from headwater.closing import Closing
from headwater.errors import UsageError
from headwater.sinks.fencing import dropped
from headwater.sinks.sink import Sink
from headwater.values.keyed import KeyedSchema, declare
from headwater.views.reading import Reading
from headwater.views.view import View
from headwater.views.view_version import DEFAULT_FEED, ViewVersion, check_numbers
from headwater.views.wait import UpstreamPositions

E = TypeVar("E", bound=ViewVersion)


class Views(Closing):
    """The views of a store, for reading."""

    remote = False
    """Whether what is asked goes over a network."""
    upstream: UpstreamPositions | None = None
    """How far what is written upstream of the views has come, where that is known: in a pipeline's home."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of all views."""

    def view(self, name: str, version: int | None = None) -> View:
        """Return a view: what is published, or one version of it."""
        return View(name, partial(self.reading, name, version), self.upstream)

    @abstractmethod
    def reading(self, name: str, version: int | None) -> AbstractContextManager[Reading]:
        """Lend a connection on which a view, or one version of it, is read."""

    @abstractmethod
    def versions(self, view: str) -> dict[int, bool]:
        """Return the versions of a view, and whether each is the published one."""

    def __getitem__(self, name: str) -> View:
        return self.view(name)


class Store(Views):
    """The views of a store, for the runner that writes them."""

    def sink(
        self,
        view: str,
        schema: str | pa.Schema,
        key: str | tuple[str, ...],
        *,
        version: int | None = None,
        feed: int = DEFAULT_FEED,
    ) -> Sink:
        """Return the sink of a view, which is made if it is not there.

        Without ``version`` it is the published one; a view's first version is published at once.
        At least the last ``feed`` changes are kept. A version keeps its columns and its key: to
        change them, build another version.
        """
        topics.check_name("view", view)
        check_numbers(version, feed)
        return self.open_sink(view, declare(f'view "{view}"', schema, key), version, feed)

    @abstractmethod
    def open_sink(self, view: str, keyed: KeyedSchema, version: int | None, feed: int) -> Sink:
        """Return the sink of a view whose settings ``sink`` has checked."""

    @abstractmethod
    def index_by(self, view: str, order: str | None, *, version: int | None = None) -> None:
        """Index a version by a column, within the leading columns of its key; None drops the index.

        A scan in the order of that column, with all of the key but its last column as ``prefix``, then
        reads the index alone.
        """

    def check_replaceable(self, view: str) -> None:
        """Refuse a table that was there before its sink: another version cannot take its place."""

    @abstractmethod
    def publish(self, view: str, version: int) -> None:
        """Let readers see a version from now on, and no longer the one before."""

    @abstractmethod
    def drop(self, view: str, version: int | None = None) -> None:
        """Remove a version that is not published, or the whole view if no version is named."""


def existing(versions: Iterable[E], version: int | None, what: str) -> E | None:
    """Return the version that is asked for, the published one if none is; None if there is none."""
    published = 0
    for entry in versions:
        if entry.published if version is None else entry.version == version:
            return entry
        published = entry.version if entry.published else published
    if version is not None and version < published:
        raise dropped(what, version)
    return None


def check_droppable(versions: list[E], version: int | None) -> None:
    """Refuse to drop the version that readers see."""
    if version is not None and versions[0].published:
        raise UsageError(
            f'version {version} of view "{versions[0].name}" is published and cannot be dropped',
            hint="publish another version first, or drop the view by leaving the version out",
        )
