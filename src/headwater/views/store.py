"""What a store of views does, wherever it keeps them: read them, write them, in one or more versions.

A rebuild writes version n+1 beside n, while readers go on with n, and then the two change places.
Invariant: a switch of versions is one transaction, so no reader sees a view half rebuilt; a version
that was dropped does not come back.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import TypeVar

import pyarrow as pa

from headwater.closing import Closing
from headwater.errors import Fenced, UsageError
from headwater.sinks.sink import Sink
from headwater.views.view import View
from headwater.views.view_version import KEPT_CHANGES, ViewVersion

E = TypeVar("E", bound=ViewVersion)


class Views(Closing):
    """The views of a store, for reading."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of all views."""

    @abstractmethod
    def view(self, name: str, version: int | None = None) -> View:
        """Return a view: what is published, or one version of it."""

    @abstractmethod
    def versions(self, view: str) -> dict[int, bool]:
        """Return the versions of a view, and whether each is the published one."""

    def __getitem__(self, name: str) -> View:
        return self.view(name)


class Store(Views):
    """The views of a store, for the runner that writes them."""

    @abstractmethod
    def sink(
        self,
        view: str,
        schema: str | pa.Schema,
        key: str | tuple[str, ...],
        *,
        version: int | None = None,
        feed: int = KEPT_CHANGES,
    ) -> Sink:
        """Return the sink of a view, which is made if it is not there.

        Without ``version`` it is the published one; a view's first version is published at once.
        At least the last ``feed`` changes are kept. A version keeps its columns and its key: to
        change them, build another version.
        """

    @abstractmethod
    def arrange(self, view: str, order: str | None, *, version: int | None = None) -> None:
        """Keep a version in the order of a column too, within the leading columns of its key.

        A scan in that order, with all of the key but its last column as ``prefix``, is then one look at an
        index. None takes it away.
        """

    @abstractmethod
    def publish(self, view: str, version: int) -> None:
        """Let readers see a version from now on, and no longer the one before."""

    @abstractmethod
    def drop(self, view: str, version: int | None = None) -> None:
        """Remove a version that is not published, or the whole view if no version is named."""


def existing(found: Iterable[E], version: int | None, what: str) -> E | None:
    """Return the version that is asked for, the published one if none is; None if it is to be made."""
    published = 0
    for entry in found:
        if entry.published if version is None else entry.version == version:
            return entry
        published = entry.version if entry.published else published
    if version is not None and version < published:
        raise dropped(what, version)
    return None


def dropped(what: str, version: int) -> Fenced:
    """Return the error for a runner whose version is no longer there."""
    return Fenced(
        f"version {version} of {what} has been dropped",
        detail="nothing was written",
        hint="a rebuild has taken its place; let this runner end",
    )


def check_droppable(found: list[E], version: int | None) -> None:
    """Refuse to drop the version that readers see."""
    if version is not None and found[0].published:
        raise UsageError(
            f'version {version} of view "{found[0].name}" is published and cannot be dropped',
            hint="publish another version first, or drop the view by leaving the version out",
        )
