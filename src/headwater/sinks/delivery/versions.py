"""A node that delivers, built anew: what was sent before is not sent again.

The version that is built stages messages only of batches that go beyond what the published one has read. When
it is published, those of batches that the other has read meanwhile are dropped, and of the rest those that
say what was sent of late. What waits of the old version is still sent. Invariant: publishing is one
transaction.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from headwater.sinks.delivery import tables
from headwater.sinks.delivery.declaration import DeliveryDeclaration, OutboxPlace
from headwater.sinks.delivery.outbox import DeliveryOutbox, is_covered, remember
from headwater.sinks.delivery.sink import DeliverySink
from headwater.sinks.delivery.tables import VersionProgress, version_progress
from headwater.sinks.sink import Sink
from headwater.sinks.versions import TargetVersions


@dataclass(frozen=True)
class DeliveryVersions(TargetVersions):
    """The versions of a node that delivers, which share its outbox."""

    place: OutboxPlace
    declaration: DeliveryDeclaration

    def published(self) -> int:
        """Return the version whose batches are sent."""
        if not self.place.file.exists():
            return 1
        with self._transaction() as db:
            return tables.published(db)

    def open(self, schema: pa.Schema, version: int) -> Sink:
        """Return the sink of a version; only the published one sends."""
        return DeliverySink(self.place, schema, self.declaration, version=version)

    def prepare(self, version: int) -> None:
        """Remove what an unfinished rebuild has left."""
        with self._transaction() as db:
            db.execute("DELETE FROM deliveries WHERE state = 'staged'")
            db.execute("DELETE FROM staged_batches")
            db.execute("DELETE FROM known_keys WHERE version >= ?", (version,))
            db.execute("DELETE FROM versions WHERE version >= ?", (version,))

    def publish(self, schema: pa.Schema, version: int) -> None:
        """Send what the batches of a version make from now on, and what it has staged that was never sent."""
        with self._transaction() as db:
            old = tables.published(db)
            if old == version:
                return
            _drop_covered(db, version_progress(db, old) or VersionProgress())
            _drop_sent(db)
            self._release(db)
            db.execute("UPDATE outbox SET published = ?", (version,))
            for table in ("known_keys", "versions"):
                db.execute(f"DELETE FROM {table} WHERE version <> ?", (version,))  # noqa: S608
            db.execute("DELETE FROM staged_batches")

    def _release(self, db: sqlite3.Connection) -> None:
        """Let staged messages go, each behind what waits with its ordering key."""
        held = self.declaration.rate_limit is not None
        staged = db.execute(
            "SELECT seq, ordering_key, digest FROM deliveries WHERE state = 'staged' ORDER BY seq"
        ).fetchall()
        for seq, ordering_key, _ in staged:
            busy = "SELECT EXISTS (SELECT 1 FROM deliveries WHERE ordering_key = ? AND state <> 'staged')"
            queued = ordering_key is not None and db.execute(busy, (ordering_key,)).fetchone()[0]
            state = "queued" if queued else "held" if held else "ready"
            db.execute("UPDATE deliveries SET state = ? WHERE seq = ?", (state, seq))
        remember(db, [digest for _, _, digest in staged])

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with DeliveryOutbox(self.place.file, self.declaration.what) as outbox, outbox.transaction() as db:
            yield db


def _drop_covered(db: sqlite3.Connection, reached: VersionProgress) -> None:
    for batch, positions in db.execute("SELECT batch, positions FROM staged_batches").fetchall():
        if is_covered(positions, reached.positions):
            db.execute("DELETE FROM deliveries WHERE state = 'staged' AND batch = ?", (batch,))


def _drop_sent(db: sqlite3.Connection) -> None:
    """Drop what says the same as something that was sent of late: a batch may begin before the old end."""
    sent = Counter(row[0] for row in db.execute("SELECT digest FROM recent"))
    staged = db.execute("SELECT seq, digest FROM deliveries WHERE state = 'staged' ORDER BY seq").fetchall()
    for seq, digest in staged:
        if sent[digest] > 0:
            sent[digest] -= 1
            db.execute("DELETE FROM deliveries WHERE seq = ?", (seq,))
