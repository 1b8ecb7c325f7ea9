"""A connection that a replication slot sends its changes on, and what is told back on it.

psycopg has no replication of its own, but the functions of libpq beneath it carry it: ``START_REPLICATION``
is answered by a copy in both directions.

Invariant: the server is told of a position as flushed only when ``confirm`` has been called with it.
"""

from __future__ import annotations

import struct
import time
from dataclasses import dataclass
from typing import Final

import psycopg
from psycopg import pq, sql

from headwater.capture.postgres import position
from headwater.capture.postgres.fetching import Messages, failure, finish, take, wait

_ASK_SECONDS: Final = 1.0
"""How often the server is asked how far it has come while nothing comes."""
_LINGER_SECONDS, _MANY, _ENOUGH = 0.02, 200, 20_000
_PAUSE: Final = 0.002
"""How long it is slept where much is coming: to be woken by every message would take the server's time."""
_KEEPALIVE: Final = ord("k")
_REPLY: Final = 17
_STATUS: Final = struct.Struct(">cQQQqB")
_EPOCH_SECONDS: Final = 946_684_800.0


@dataclass(frozen=True)
class Subscription:
    """What a stream sends."""

    slot: str
    publication: str
    binary: bool


class ReplicationStream:
    """The changes of a slot from a position on."""

    def __init__(self, dsn: str, subscription: Subscription, start: int):
        self._flushed, self._asked, self._ended = 0, 0.0, False
        self._db = psycopg.connect(dsn, autocommit=True, replication="database")
        self._pg = self._db.pgconn
        try:
            self._start(subscription, start)
        except BaseException:
            self._db.close()
            raise

    def fetch(self, timeout: float) -> Messages:
        """Return what has come, as much as there is; wait for the first of it."""
        messages = Messages.of(self._more(self._first(time.monotonic() + timeout)))
        self._answer(messages)
        return messages

    def ask_soon(self) -> None:
        """Ask how far the server has come as soon as there is nothing to fetch."""
        self._asked = 0.0

    def confirm(self, flushed: int) -> None:
        """Tell the server that it need not keep what is before a position."""
        self._flushed = max(self._flushed, flushed)
        self._report(ask=False)

    def close(self) -> None:
        """End the stream."""
        self._db.close()

    def _start(self, subscription: Subscription, start: int) -> None:
        names = sql.Identifier(subscription.publication).as_string(self._db)
        options = {"proto_version": "1", "publication_names": names}
        options |= {"binary": "true"} if subscription.binary else {}
        written = sql.SQL(", ").join(
            sql.SQL("{} {}").format(sql.Identifier(name), sql.Literal(value))
            for name, value in options.items()
        )
        command = sql.SQL("START_REPLICATION SLOT {} LOGICAL {} ({})").format(
            sql.Identifier(subscription.slot), sql.SQL(position.text(start)), written
        )
        result = self._pg.exec_(command.as_bytes(self._db))
        if result.status != pq.ExecStatus.COPY_BOTH:
            raise failure(result)

    def _first(self, deadline: float) -> list[bytes]:
        taken = self._take()
        while not taken and (left := deadline - time.monotonic()) > 0:
            self._ask()
            wait(self._pg, min(left, _ASK_SECONDS))
            taken = self._take()
        return taken

    def _more(self, taken: list[bytes]) -> list[bytes]:
        """Wait a moment for more where much is coming: many small deliveries cost more than a large one."""
        deadline = time.monotonic() + _LINGER_SECONDS
        while _MANY <= len(taken) < _ENOUGH and not self._ended and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, _PAUSE))
            taken += self._take()
        return taken

    def _take(self) -> list[bytes]:
        """Return what is there; what has ended the stream is told when all before it has been taken."""
        if self._ended:
            finish(self._pg)
            raise psycopg.OperationalError("the server has ended the stream")
        taken = take(self._pg)
        self._ended = taken.ended
        return taken.messages if taken.messages or not taken.ended else self._take()

    def _ask(self) -> None:
        if time.monotonic() - self._asked >= _ASK_SECONDS:
            self._report(ask=True)

    def _answer(self, messages: Messages) -> None:
        """Answer if the server wants to know whether somebody is there."""
        data, start = messages.buffer.bytes, messages.start
        if data[start[data[start] == _KEEPALIVE] + _REPLY].any():
            self._report(ask=False)

    def _report(self, ask: bool) -> None:
        if ask:
            self._asked = time.monotonic()
        now = int((time.time() - _EPOCH_SECONDS) * 1e6)
        self._pg.put_copy_data(_STATUS.pack(b"r", self._flushed, self._flushed, self._flushed, now, ask))
        self._pg.flush()
