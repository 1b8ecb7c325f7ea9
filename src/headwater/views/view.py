"""Reading views: by key, by range, in any order, as they change, and not before one's own writes.

Any number of processes may read while the runner commits. Invariant: what one read returns is the
view as it was after one batch, never in the middle of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from headwater.log.position import Position
from headwater.values.keyed import KeyedSchema, key_values
from headwater.views.changes import Change
from headwater.views.query import ViewQuery
from headwater.views.reading import Lend
from headwater.views.snapshot import ViewSnapshot
from headwater.views.view_version import ViewVersion
from headwater.views.wait import UpstreamPositions, wait

TIMEOUT = 30.0


class View:
    """One view, for reading, by any number of threads.

    Every read may be told to ``wait_for`` a position of one of the view's inputs, such as a
    producer's ``flush`` returns, or of a topic from which its pipeline derives them: it waits until the
    view includes everything before it, or raises ``Behind`` after ``timeout`` seconds. When a rebuild is
    published, the next read is of the new version.
    """

    def __init__(self, name: str, lend: Lend, upstream: UpstreamPositions | None = None):
        self.name = name
        self._lend, self._upstream = lend, upstream
        self._entry()  # says so if there is none

    @property
    def schema(self) -> pa.Schema:
        """The view's columns."""
        return self._entry().keyed.schema

    @property
    def key(self) -> tuple[str, ...]:
        """The columns of the view's key."""
        return self._entry().key

    @property
    def keyed(self) -> KeyedSchema:
        """The view's columns and key, of one moment."""
        return self._entry().keyed

    @property
    def version(self) -> int:
        """The version that is read now."""
        return self._entry().version

    def get(
        self, key: Any, *, wait_for: Position | None = None, timeout: float = TIMEOUT
    ) -> dict[str, Any] | None:
        """Return the row of a key, or None.

        A key of several columns is a tuple in their order, or a mapping.
        """
        self._wait(wait_for, timeout)
        with self._lend() as reading:
            keyed = reading.entry().keyed
            query = ViewQuery(key_values(key, keyed))
            query.check(keyed)
            rows = [row for batch in reading.batches(query) for row in batch.to_pylist()]
        return rows[0] if rows else None

    def scan(
        self,
        prefix: Any = None,
        start: Any = None,
        end: Any = None,
        order: str | None = None,
        descending: bool = False,
        limit: int | None = None,
        *,
        wait_for: Position | None = None,
        timeout: float = TIMEOUT,
    ) -> ViewScan:
        """Return the view's rows, or some of them, by key or in the order of a column.

        ``prefix`` is a value, or a tuple of values, of the leading columns of the key; ``start``
        (included) and ``end`` (left out) bound the column after those. Nulls come first, and last if
        ``descending``.
        """
        query = ViewQuery(_prefix(prefix), start, end, order, descending, limit)
        return self.select(query, wait_for=wait_for, timeout=timeout)

    def select(
        self, query: ViewQuery, *, wait_for: Position | None = None, timeout: float = TIMEOUT
    ) -> ViewScan:
        """Return the rows that a query asks for; unlike ``scan`` it can go on after a row."""
        self._wait(wait_for, timeout)
        query.check(self._entry().keyed)  # refused now, not at the first row
        return ViewScan(self._lend, query)

    @contextmanager
    def snapshot(self, prefix: Any = None, limit: int | None = None) -> Iterator[ViewSnapshot]:
        """Lend the rows with the number of the change up to which they are, both of one moment.

        ``prefix`` is as for ``scan``. ``changes(since=snapshot.sequence)`` goes on where the rows end.
        """
        query = ViewQuery(_prefix(prefix), limit=limit)
        with self._lend() as reading:
            query.check(reading.entry().keyed)
            with reading.snapshot(query) as snapshot:
                yield snapshot

    def changes(
        self,
        since: int = 0,
        follow: bool = False,
        timeout: float | None = None,
        *,
        wait_for: Position | None = None,
    ) -> Iterator[Change]:
        """Yield the changes after the one with the number ``since``; 0 is before the first.

        Changes of one batch come in the order of their keys. With ``follow`` the iterator waits for
        more, and ends when there has been none for ``timeout`` seconds (None: never). Raises
        ``OffsetLost`` if changes after ``since`` are no longer kept, or the view has been rebuilt.
        """
        self._wait(wait_for, TIMEOUT if timeout is None else timeout)
        return self._changes(since, follow, timeout)

    def wait(self, position: Position, timeout: float = TIMEOUT, waited: float = 0.0) -> None:
        """Return when the view includes what lies before a position; ``Behind`` if that takes too long.

        ``waited`` is for how many seconds that has been tried before, for the error to say so.
        """
        with self._lend() as reading:
            wait(reading, position, timeout, waited, self._upstream)

    def sequence(self) -> int:
        """Return the number of the newest change."""
        with self._lend() as reading:
            return reading.sequence()

    def position(self) -> tuple[Position, ...]:
        """Return how far each input is included in the view."""
        return self._entry().positions

    def batch(self) -> int:
        """Return the number of the last batch that is in the view, or -1."""
        return self._entry().batch

    def watermark(self) -> int | None:
        """Return the view's clock, in microseconds since 1970; None where it has none."""
        return self._entry().watermark

    def count(self, *, wait_for: Position | None = None, timeout: float = TIMEOUT) -> int:
        """Return the number of rows."""
        self._wait(wait_for, timeout)
        with self._lend() as reading:
            return reading.count()

    def _entry(self) -> ViewVersion:
        with self._lend() as reading:
            return reading.entry()

    def _changes(self, since: int, follow: bool, timeout: float | None) -> Iterator[Change]:
        with self._lend() as reading:
            while True:
                while chunk := reading.chunk(since):
                    yield from chunk
                    since = chunk[-1].sequence
                if not follow:
                    return
                seen = since or reading.entry().first
                if not any(reading.sequence() != seen for _ in reading.commits(timeout)):
                    return

    def _wait(self, position: Position | None, timeout: float) -> None:
        if position is not None:
            self.wait(position, timeout)


class ViewScan:
    """The rows that a scan finds, as Arrow batches, all from one moment.

    The moment is when the iteration begins. An iteration that is not finished keeps the store from
    reusing space, and a rebuild in PostgreSQL from taking its place, so finish it, or take
    ``to_table``.
    """

    def __init__(self, lend: Lend, query: ViewQuery):
        self._lend, self._query = lend, query

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        with self._lend() as reading:
            yield from reading.batches(self._query)

    def to_table(self) -> pa.Table:
        """Return the rows as one Arrow table."""
        batches = list(self)
        if batches:
            return pa.Table.from_batches(batches)
        with self._lend() as reading:
            return reading.entry().keyed.schema.empty_table()

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return the rows as mappings."""
        return [row for batch in self for row in batch.to_pylist()]


def _prefix(values: Any) -> tuple[Any, ...]:
    return values if isinstance(values, tuple) else () if values is None else (values,)
