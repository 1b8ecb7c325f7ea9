"""What a view asks of the connection that it is read on; each kind of store answers in its own way.

Invariant: one answer is of one moment, the view after some batch, never in the middle of one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import pyarrow as pa

from headwater.values.keyed import KeyedSchema
from headwater.views.changes import Change
from headwater.views.query import ViewQuery
from headwater.views.snapshot import ViewSnapshot
from headwater.views.view_version import ViewVersion


class StoredRow(NamedTuple):
    """A row as its store has it, the version of the view, and the number of its newest change."""

    version: ViewVersion
    sequence: int
    values: tuple[Any, ...] | None
    """None if there is no row with the key."""
    to_json: Callable[[tuple[Any, ...], pa.Schema], bytes | None]

    def json(self) -> bytes | None:
        """Return the row as a JSON object; None where it has to go through Arrow."""
        return None if self.values is None else self.to_json(self.values, self.version.keyed.schema)


class Reading(ABC):
    """A view on a connection that nobody else uses at the time."""

    @abstractmethod
    def entry(self) -> ViewVersion:
        """Return the version that is read, and how far it has got."""

    @abstractmethod
    def batches(self, query: ViewQuery) -> Iterator[pa.RecordBatch]:
        """Yield the rows that are asked for, all as they are when the first one is taken."""

    @abstractmethod
    def snapshot(self, query: ViewQuery) -> AbstractContextManager[ViewSnapshot]:
        """Return the rows that are asked for with the number of the newest change they include."""

    @abstractmethod
    def count(self) -> int:
        """Return the number of rows."""

    @abstractmethod
    def chunk(self, since: int) -> Sequence[Change]:
        """Return some of the changes after a number, the next ones; none if there are no more."""

    @abstractmethod
    def sequence(self) -> int:
        """Return the number of the newest change."""

    def state(self) -> tuple[ViewVersion, int]:
        """Return the version that is read, and the number of a change in it: the newest, or one before."""
        sequence = self.sequence()
        return self.entry(), sequence

    def stored_row(self, key_of: Callable[[KeyedSchema], tuple[Any, ...]]) -> StoredRow | None:
        """Return the row of a key as it is stored, all of one moment; ``key_of`` gives the key.

        It is the short way to one row as JSON; None where the store has none.
        """
        return None

    @abstractmethod
    def commits(self, timeout: float | None) -> Iterator[None]:
        """Yield at once, then whenever something may have been committed, until the time is over."""


Lend = Callable[[], AbstractContextManager[Reading]]
"""Lends a connection for a while."""
