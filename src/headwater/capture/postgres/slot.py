"""The replication slot: what makes the server keep changes until they are confirmed, and whether it has.

Invariant: a stream is begun only at a position from which on the slot still has everything, on the server
that the position is of; whatever else is found is told, with what to do.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final

import psycopg

from headwater.capture.postgres import position as positions
from headwater.errors import SourceRefused, SourceUnavailable

_OLDEST: Final = 140_000
_SERVER: Final = """
    SELECT current_setting('wal_level') AS level, pg_is_in_recovery() AS standby,
           (SELECT rolreplication OR rolsuper FROM pg_roles WHERE rolname = current_user) AS may,
           current_user AS user, (SELECT system_identifier::text FROM pg_control_system()) AS system
"""
_SLOT: Final = """
    SELECT plugin, database = current_database() AS here, active_pid, wal_status,
           confirmed_flush_lsn::text AS confirmed
    FROM pg_replication_slots WHERE slot_name = %s
"""
_RETAINED: Final = """
    SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::int8
    FROM pg_replication_slots WHERE slot_name = %s
"""
_COMMITTING: Final = """
    SELECT array_agg(backend_xid::text) FROM pg_stat_activity
    WHERE datname = current_database() AND backend_xid IS NOT NULL AND wait_event = 'SyncRep'
"""
_SETTLE_SECONDS, _PATIENCE, _PAUSE = 0.05, 30.0, 0.1
_CREATE: Final = "SELECT lsn::text FROM pg_create_logical_replication_slot(%s, 'pgoutput')"
_CREATE_TIMEOUT = "60s"
_AGAIN: Final = "drop it (`headwater capture drop`) and begin it anew, with new snapshots"


@dataclass(frozen=True)
class ReplicationSlot:
    """A replication slot, which is there or not."""

    name: str
    given: bool

    def exists(self, db: psycopg.Connection) -> bool:
        """Tell whether it is there."""
        return self._found(db) is not None

    def create(self, db: psycopg.Connection) -> int:
        """Make it, and return the position from which on it keeps changes.

        The server waits until every transaction that is open now has ended, a minute at most.
        """
        if self.given:
            raise SourceRefused(
                f'replication slot "{self.name}" does not exist',
                hint=f"create it: SELECT pg_create_logical_replication_slot('{self.name}', 'pgoutput')",
            )
        db.execute("SELECT set_config('statement_timeout', %s, true)", (_CREATE_TIMEOUT,))
        try:
            found = db.execute(_CREATE, (self.name,)).fetchone()
        except psycopg.errors.QueryCanceled:
            raise self._waiting() from None
        except psycopg.errors.ConfigurationLimitExceeded:
            raise SourceRefused(
                f'replication slot "{self.name}" cannot be made: all slots of the server are in use',
                hint="raise max_replication_slots and restart the server, or drop a slot that nobody reads",
            ) from None
        assert found is not None
        return positions.number(found[0])

    def check(self, db: psycopg.Connection, begin: int | None) -> None:
        """Refuse a slot that cannot be read, or that no longer has what is behind a position."""
        found = self._found(db)
        if found is None:
            raise self._lost("it is not there: somebody has dropped it, or the server is another one")
        if not found["here"] or found["plugin"] != "pgoutput":
            detail = "it is of another database" if not found["here"] else f"its plugin is {found['plugin']}"
            raise SourceRefused(
                f'replication slot "{self.name}" cannot be read', detail=detail,
                hint="give a slot of this database with the plugin pgoutput"
                if self.given
                else "give the capture another name, or a slot of this database with the plugin pgoutput",
            )  # fmt: skip
        if found["wal_status"] == "lost":
            raise self._lost("the server has removed what it kept: more than max_slot_wal_keep_size")
        if begin is not None and begin < positions.number(found["confirmed"]):
            raise self._lost(f"it begins at {found['confirmed']}, and {positions.text(begin)} is asked for")

    def active(self, db: psycopg.Connection) -> int | None:
        """Return the process of the server that sends its changes to somebody now."""
        found = self._found(db)
        return found["active_pid"] if found is not None else None

    def busy(self, process: int | None) -> SourceUnavailable:
        """Return the error that somebody else reads it."""
        return SourceUnavailable(
            f'replication slot "{self.name}" is in use',
            detail=f"process {process} of the server sends its changes to somebody" if process else None,
            hint="end who reads it, or give another slot"
            if self.given
            else "end the other capture of this name, or give this one another name",
        )

    def retained(self, db: psycopg.Connection) -> int | None:
        """Return how many bytes of log the server keeps for it."""
        found = db.execute(_RETAINED, (self.name,)).fetchone()
        return found[0] if found is not None else None

    def drop(self, db: psycopg.Connection) -> None:
        """Remove it if it was made by a capture."""
        if self.given or self._found(db) is None:
            return
        try:
            db.execute("SELECT pg_drop_replication_slot(%s)", (self.name,))
        except psycopg.errors.ObjectInUse:
            raise self.busy(None) from None

    def _found(self, db: psycopg.Connection) -> dict[str, Any] | None:
        with db.cursor(row_factory=psycopg.rows.dict_row) as cursor:
            return cursor.execute(_SLOT, (self.name,)).fetchone()

    def _waiting(self) -> SourceUnavailable:
        return SourceUnavailable(
            f'replication slot "{self.name}" cannot be made while older transactions are open',
            detail=f"some have not ended within {_CREATE_TIMEOUT}",
            hint="see which, and end them: SELECT pid, xact_start, query FROM pg_stat_activity "
            "WHERE backend_xid IS NOT NULL ORDER BY xact_start",
        )

    def _lost(self, detail: str) -> SourceRefused:
        return SourceRefused(
            f'replication slot "{self.name}" no longer has the changes to go on with',
            detail=detail,
            hint=_AGAIN,
        )


def check_server(db: psycopg.Connection, title: str) -> str:
    """Refuse a server that is not set up for replication; return its identifier."""
    with db.cursor(row_factory=psycopg.rows.dict_row) as cursor:
        found: dict[str, Any] = cursor.execute(_SERVER).fetchone() or {}
    detail, hint = _lacking(db.info.server_version, found)
    if detail:
        raise SourceRefused(f"{title} cannot be captured", detail=detail, hint=hint)
    return str(found["system"])


def check_position(db: psycopg.Connection, position: str, identifier: str, title: str) -> int:
    """Refuse a position that the server has not reached, or that is of another; return it as a number."""
    begin, named = positions.number(position), positions.system(position)
    if named is not None and named != identifier:
        raise SourceRefused(
            f"{title} is not the database that was captured",
            detail=f"its identifier is {identifier}, and the position is of {named}",
            hint=f"connect to the database of before; or {_AGAIN}",
        )
    now = current(db)
    if begin > now:
        raise SourceRefused(
            f"{title} is behind what was captured",
            detail=f"it is at {positions.text(now)}, and the capture at {positions.text(begin)}: "
            "it was restored, or a standby without the last changes has taken over",
            hint=f"what was captured since is no longer true there: {_AGAIN}",
        )
    return begin


def current(db: psycopg.Connection) -> int:
    """Return the position behind everything that has been written to the log."""
    found = db.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
    assert found is not None
    return positions.record_end(positions.number(found[0]))


def moment(db: psycopg.Connection) -> tuple[int, int]:
    """Return what time it is, in microseconds since 1970, and the position from which on others commit then.

    A transaction that is not before that position has taken its time a moment ago at the earliest: the server
    dates a commit before it writes it to its log.
    """
    # Two statements: the time of the first is before the position of the second.
    found = db.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8").fetchone()
    assert found is not None
    return int(found[0]), current(db)


def flushed(db: psycopg.Connection) -> int:
    """Return the position up to which the log is on disk."""
    found = db.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()
    assert found is not None
    return positions.number(found[0])


def settle(db: psycopg.Connection, title: str) -> None:
    """Wait until what has been committed can be seen.

    A stream that begins now will not deliver it, so a snapshot has to see it. A transaction can be seen a
    moment after its commit is on disk: microseconds, or when a synchronous standby has it too.
    """
    time.sleep(_SETTLE_SECONDS)
    deadline = time.monotonic() + _PATIENCE
    waiting = _committing(db)
    while waiting & _committing(db):
        if time.monotonic() > deadline:
            raise unseen(title)
        time.sleep(_PAUSE)


def unseen(title: str) -> SourceUnavailable:
    """Return the error that committed transactions cannot be seen."""
    return SourceUnavailable(
        f"{title} does not show transactions that it has committed",
        hint="see whether a synchronous standby is away, for which the server waits",
    )


def _committing(db: psycopg.Connection) -> set[str]:
    db.execute("SELECT pg_stat_clear_snapshot()")
    found = db.execute(_COMMITTING).fetchone()
    return set(found[0] or ()) if found is not None else set()


def _lacking(version: int, found: dict[str, Any]) -> tuple[str | None, str | None]:
    if version < _OLDEST:
        return f"it is PostgreSQL {version // 10_000}", "use PostgreSQL 14 or later"
    if found["standby"]:
        return "it is a standby", "connect to the primary"
    if found["level"] != "logical":
        hint = "set wal_level = logical (ALTER SYSTEM SET wal_level = 'logical') and restart the server"
        return f"its wal_level is {found['level']}", hint
    if not found["may"]:
        hint = f"give it: ALTER ROLE {found['user']} REPLICATION"
        return f"the user {found['user']} has not the right to replicate", hint
    return None, None
