"""What a database has to do to be captured.

A source is used by one thread. The stream of changes begins at a position and is delivered again, the same,
to whoever begins there later, until the position has been confirmed. Snapshots are read in chunks beside it:
the capture drops from a chunk what the stream has changed meanwhile (``snapshot.py``).

Invariant: a source changes nothing in the database but what it has made itself, which ``drop`` removes, and
rows that it is asked to delete; and it never skips a change: a position that is no longer held, or that the
database has not reached, is refused.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from headwater import durations
from headwater.capture.change import Delivery, SnapshotChunk, SourceTable
from headwater.closing import Closing


class SourceMoment(NamedTuple):
    """Where a database's history ended at a time of its own clock."""

    position: str
    """Behind everything that was committed by then."""
    time: int
    """In microseconds since 1970."""


class CaptureSource(Closing):
    """A database whose changes can be read."""

    title: str
    """The kind and name of the database, as messages name it; without a secret."""

    @abstractmethod
    def tables(self) -> list[SourceTable]:
        """Return every table, by name, also those that cannot be captured: they have no key."""

    def identities(self, tables: Iterable[str]) -> Mapping[str, str]:
        """Return what tells each of some tables from another of its name; without those that are not there.

        A source that tells of tables that were made anew by itself has nothing to add.
        """
        return dict.fromkeys(tables, "")

    @abstractmethod
    def begin(self, tables: Sequence[str], position: str | None) -> str:
        """Make ready to deliver the changes of tables, and return from where on they are delivered.

        ``position`` is what the capture has stored last; without one the stream begins now. It may be called
        again later with other tables: those that came are delivered from then on. Raises ``SourceRefused``
        where the database is not set up for it, lacks the position, or is behind it: restored, or another.
        """

    @abstractmethod
    def read(self, timeout: float) -> Delivery:
        """Return what comes next, or an empty delivery when nothing came within some seconds."""

    def end_first_at(self, position: str) -> None:
        """Let the first transaction that is delivered end where it has ended before; most know it anyway."""
        return

    @abstractmethod
    def confirm(self, position: str) -> None:
        """Let the database forget what is before a position: the log has it durably."""

    @abstractmethod
    def passed(self, position: str, other: str) -> bool:
        """Tell whether a position is the other one or behind it."""

    @abstractmethod
    def end(self) -> str:
        """Return the position behind everything that is committed now."""

    def moment(self) -> SourceMoment:
        """Return where the history ends, and a time of the clock by which commits are dated, from before."""
        now = durations.now()
        return SourceMoment(self.end(), now)

    @abstractmethod
    def chunk(self, table: str, after: tuple[object, ...] | None, limit: int) -> SnapshotChunk:
        """Return rows of a table behind a key, in the order of the key, as they are at one moment.

        Whatever was delivered before the call is in it.
        """

    @abstractmethod
    def count(self, table: str) -> int:
        """Return about how many rows a table has, for showing progress."""

    @abstractmethod
    def delete_rows(self, table: str, keys: pa.RecordBatch) -> bool:
        """Delete the rows of some keys, of those that are there, in a transaction of its own.

        The columns are those of the table's key. False if others were in the way: then none is deleted.
        """

    @abstractmethod
    def retained(self) -> int | None:
        """Return how many bytes the database keeps for this capture, if it tells."""

    @abstractmethod
    def drop(self) -> None:
        """Remove from the database everything that captures of this name have made there."""
