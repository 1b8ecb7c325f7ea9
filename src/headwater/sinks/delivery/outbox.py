"""The outbox of one node, as its sink writes it: what is to be delivered, in the transaction of the batch.

Invariant: a batch's deliveries and its number are stored together or not at all, once, by the runner with the
newest epoch only; and what is stored stays until it has been delivered, summed up or discarded.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from headwater.closing import Closing
from headwater.errors import SinkUnavailable
from headwater.log.position import Position
from headwater.sinks import crash
from headwater.sinks.delivery import tables
from headwater.sinks.delivery.delivery import Composer
from headwater.sinks.delivery.drafts import DeliveryDraft, DraftBuilder, delivery_id, ordering_keys
from headwater.sinks.delivery.tables import OUTBOX, VersionProgress, version_progress
from headwater.sinks.fencing import dropped, taken_over
from headwater.sinks.sink import Batch
from headwater.stores.sqlite.connection import Writer
from headwater.values.fitting import Fitted, TargetSchema

RECENT = 10_000
"""Of as many deliveries an outbox remembers what they said, for a rebuild."""


@dataclass(frozen=True)
class OutboxLease:
    """As whom a runner writes to an outbox and sends what is in it."""

    version: int
    epoch: int
    sends: bool
    """Whether its version is the published one."""


class DeliveryOutbox(Closing):
    """An outbox that is open for writing, in one process."""

    def __init__(self, path: Path, what: str):
        self._writer, self.what = Writer(path, "fsync", OUTBOX), what

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Change the outbox, all or nothing."""
        with self._writer.transaction() as db:
            yield db

    def begin(self, version: int) -> tuple[OutboxLease, VersionProgress]:
        """Take over from any other runner of a version."""
        with self.transaction() as db:
            there = tables.published(db)
            if version < there:
                raise dropped(self.what, version)
            reached = version_progress(db, version) or VersionProgress()
            db.execute("INSERT OR IGNORE INTO versions (version) VALUES (?)", (version,))
            db.execute("UPDATE versions SET epoch = epoch + 1 WHERE version = ?", (version,))
        return OutboxLease(version, reached.epoch + 1, version == there), reached

    def check(self, db: sqlite3.Connection, lease: OutboxLease) -> VersionProgress:
        """Refuse a runner that another has replaced, or whose version a rebuild has."""
        reached = version_progress(db, lease.version)
        if reached is None or tables.published(db) > lease.version:
            raise dropped(self.what, lease.version)
        if reached.epoch != lease.epoch:
            raise taken_over(self.what)
        return reached

    def close(self) -> None:
        """Close the file."""
        self._writer.close()


@dataclass(frozen=True)
class BatchAppender:
    """Adds the deliveries of batches to an outbox."""

    outbox: DeliveryOutbox
    shape: TargetSchema
    composer: Composer
    limit: int
    """As many deliveries may wait; a batch that begins below it is taken whole."""
    held: bool = False
    """Whether a rate limit decides when they are sent."""

    def append(self, batch: Batch, fitted: Fitted, lease: OutboxLease) -> bool:
        """Add the deliveries of a batch; return False if they were added before."""
        keys = ordering_keys(fitted, self.shape)
        with self.outbox.transaction() as db:
            if batch.number <= self.outbox.check(db, lease).batch:
                return False
            builder = DraftBuilder(db, lease.version, self.composer)
            drafts = list(builder.drafts(fitted, keys, time.time()))
            if drafts:
                self._add(db, drafts, batch, lease)
            crash.point("outbox: deliveries added")
            _note_progress(db, batch, lease)
            crash.point("outbox: before commit")
        return True

    def _add(
        self, db: sqlite3.Connection, drafts: list[DeliveryDraft], batch: Batch, lease: OutboxLease
    ) -> None:
        self._check_room(db)
        staged = lease.version > tables.published(db)
        if staged and _is_covered(db, batch):
            return
        (name,) = db.execute("SELECT id FROM outbox").fetchone()
        rows = (
            {
                "id": delivery_id(name, lease.version, batch.number, draft.row),
                "ordering_key": draft.ordering_key,
                "recipient": None,
                "body": draft.body,
                "state": "staged" if staged else "held" if self.held else "ready",
                "version": lease.version,
                "batch": batch.number,
                "digest": draft.digest,
            }
            for draft in drafts
        )
        db.executemany(tables.ADD, rows)
        if staged:
            noted = (lease.version, batch.number, _positions(batch))
            db.execute("INSERT INTO staged_batches VALUES (?, ?, ?)", noted)
        else:
            remember(db, [draft.digest for draft in drafts])

    def _check_room(self, db: sqlite3.Connection) -> None:
        waiting = tables.pending(db)
        if waiting >= self.limit:
            raise SinkUnavailable(
                f"the outbox of {self.outbox.what} is full",
                detail=f"{waiting:,} deliveries wait or are set aside, and it holds {self.limit:,}",
                hint="mend the endpoint, then run `headwater dead redrive FILE NODE`",
            )


def remember(db: sqlite3.Connection, digests: list[bytes]) -> None:
    """Remember what deliveries say, of the newest ones."""
    db.executemany("INSERT INTO recent (digest) VALUES (?)", ((digest,) for digest in digests[-RECENT:]))
    db.execute("DELETE FROM recent WHERE seq <= (SELECT max(seq) FROM recent) - ?", (RECENT,))


def _positions(batch: Batch) -> str:
    return "\n".join(map(str, batch.positions))


def _note_progress(db: sqlite3.Connection, batch: Batch, lease: OutboxLease) -> None:
    db.execute(
        "UPDATE versions SET batch = ?, positions = ?, clock = ? WHERE version = ?",
        (batch.number, _positions(batch), batch.watermark, lease.version),
    )


def _is_covered(db: sqlite3.Connection, batch: Batch) -> bool:
    """Tell whether the published version has been as far as a batch of another."""
    reached = version_progress(db, tables.published(db)) or VersionProgress()
    return is_covered(_positions(batch), reached.positions)


def is_covered(positions: str, reached: str) -> bool:
    """Tell whether positions are nowhere beyond others.

    >>> is_covered("", "")
    True
    """
    others = {each.topic: each for each in map(Position.parse, reached.splitlines())}
    return all(
        each.topic in others
        and others[each.topic].id == each.id
        and all(offset <= others[each.topic].offsets.get(part, 0) for part, offset in each.offsets.items())
        for each in map(Position.parse, positions.splitlines())
    )
