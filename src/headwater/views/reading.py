"""What a view asks of the connection that it is read on; each kind of store answers in its own way.

Invariant: one answer is of one moment, the view after some batch, never in the middle of one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

import pyarrow as pa

from headwater.views.changes import Change
from headwater.views.query import ViewQuery
from headwater.views.view_version import ViewVersion


class Reading(ABC):
    """A view on a connection that nobody else uses at the time."""

    @abstractmethod
    def entry(self) -> ViewVersion:
        """Return the version that is read, and how far it has got."""

    @abstractmethod
    def batches(self, query: ViewQuery) -> Iterator[pa.RecordBatch]:
        """Yield the rows that are asked for, all as they are when the first one is taken."""

    @abstractmethod
    def count(self) -> int:
        """Return the number of rows."""

    @abstractmethod
    def chunk(self, since: int) -> Sequence[Change]:
        """Return some of the changes after a number, the next ones; none if there are no more."""

    @abstractmethod
    def sequence(self) -> int:
        """Return the number of the newest change."""

    @abstractmethod
    def commits(self, timeout: float | None) -> Iterator[None]:
        """Yield at once, then whenever something may have been committed, until the time is over."""


Lend = Callable[[], AbstractContextManager[Reading]]
"""Lends a connection for a while."""
