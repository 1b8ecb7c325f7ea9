"""The messages of ``pgoutput``, many at a time: which transaction each change is of, and of which table.

The server sends transactions one behind the other, each when it is committed: Begin, changes, Commit. A table
is described before its first change, and again when it has changed. A fetch may end within a transaction, so
what is open is carried over to the next.

Invariant: a change has the same transaction and the same number in it however the stream was cut into
fetches; the position never is behind a change that has not been handed out.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from headwater.capture.change import Numbers, Transactions
from headwater.capture.postgres import position
from headwater.capture.postgres.binary_columns import EPOCH_MICROSECONDS
from headwater.capture.postgres.fetching import Messages
from headwater.capture.postgres.tuples import Buffer, Bytes, Flags, Places

HEADER: Final = 25
"""How many bytes are before what the plugin has written."""
BEGIN, COMMIT, RELATION, INSERT, UPDATE, DELETE, TRUNCATE = b"BCRIUDT"
_KEEPALIVE: Final = ord("k")
_IS_CHANGE: Final = np.isin(np.arange(256), np.frombuffer(b"IUDT", np.uint8))
"""Whether a letter is that of a change."""


@dataclass(frozen=True)
class RelationColumn:
    """A column as the stream describes it."""

    name: str
    type: int
    modifier: int
    identifies: bool
    """Whether it is part of the replica identity."""


@dataclass(frozen=True)
class Relation:
    """A table as the stream describes it."""

    number: int
    schema: str
    name: str
    identity: str
    """``d`` the primary key, ``i`` an index, ``f`` all columns, ``n`` nothing."""
    columns: tuple[RelationColumn, ...]


@dataclass(frozen=True)
class RowMessages:
    """Changes of rows of one table, in their order."""

    relation: Relation
    buffer: Buffer
    kind: Bytes
    start: Places
    """Where each begins, at the letter of its kind."""
    transaction: Numbers
    index: Numbers


@dataclass(frozen=True)
class TruncateMessage:
    """Tables were emptied."""

    relations: tuple[Relation, ...]
    transaction: int
    index: int


@dataclass(frozen=True)
class OpenTransaction:
    """A transaction whose end has not come yet."""

    number: int
    final: int
    committed: int
    changes: int = 0
    """How many of its changes have come."""


@dataclass(frozen=True)
class Parsed:
    """What a fetch has brought."""

    parts: tuple[RowMessages | TruncateMessage, ...]
    transactions: Transactions
    numbers: Numbers
    """The numbers of the transactions, as the server's snapshots name them."""
    position: int | None


class Parser:
    """Reads one stream from its beginning.

    ``delivered`` is the transaction with which the stream begins, if some of it was handed out before: those
    changes are left out.
    """

    def __init__(self, delivered: OpenTransaction | None = None):
        self.open: OpenTransaction | None = None
        self._delivered = delivered
        self._relations: dict[int, Relation] = {}

    def parse(self, messages: Messages) -> Parsed:
        """Return the changes of the next messages."""
        fetch = _Fetch(messages, self.open)
        parts = tuple(self._parts(fetch))
        self.open = fetch.still_open()
        return Parsed(parts, fetch.transactions(), fetch.numbers, fetch.position())

    def _parts(self, fetch: _Fetch) -> Iterator[RowMessages | TruncateMessage]:
        """Yield what lies between messages that change what follows."""
        wanted = self._wanted(fetch)
        breaks = np.flatnonzero((fetch.kind == RELATION) | ((fetch.kind == TRUNCATE) & wanted))
        begin = 0
        for at in [*breaks.tolist(), len(fetch.kind)]:
            yield from self._runs(fetch, begin + np.flatnonzero(wanted[begin:at]))
            if at < len(fetch.kind):
                yield from self._broken(fetch, at)
            begin = at + 1

    def _wanted(self, fetch: _Fetch) -> Flags:
        """Tell which changes have not been handed out before."""
        changes: Flags = _IS_CHANGE[fetch.kind]
        before = self._delivered
        if before is None or not len(fetch.numbers) or fetch.numbers[0] != before.number:
            return changes
        known: Flags = (fetch.transaction == 0) & (fetch.index < before.changes)
        return changes & ~known

    def _runs(self, fetch: _Fetch, rows: Places) -> Iterator[RowMessages]:
        if not len(rows):
            return
        relations = fetch.buffer.numbers("u4", fetch.start[rows] + 1)
        for number in np.unique(relations).tolist():
            mine = rows[relations == number]
            yield RowMessages(
                self._relations[number], fetch.buffer, fetch.kind[mine], fetch.start[mine],
                fetch.transaction[mine], fetch.index[mine],
            )  # fmt: skip

    def _broken(self, fetch: _Fetch, at: int) -> Iterator[TruncateMessage]:
        start = int(fetch.start[at])
        if fetch.kind[at] == RELATION:
            relation = relation_at(fetch.buffer.data, start)
            self._relations[relation.number] = relation
            return
        count, _ = struct.unpack_from(">IB", fetch.buffer.data, start + 1)
        numbers = struct.unpack_from(f">{count}I", fetch.buffer.data, start + 6)
        relations = tuple(self._relations[number] for number in numbers)
        yield TruncateMessage(relations, int(fetch.transaction[at]), int(fetch.index[at]))


class _Fetch:
    """The messages of one fetch, with what holds for all of them."""

    def __init__(self, messages: Messages, carried: OpenTransaction | None):
        self.buffer, data = messages.buffer, messages.buffer.bytes
        alive = data[messages.start] == _KEEPALIVE
        self.start = messages.start + np.where(alive, 0, HEADER)
        self.kind = data[self.start]
        self._carried, before = carried, int(carried is not None)
        begins, seen = self.kind == BEGIN, np.cumsum(_IS_CHANGE[self.kind])
        self._commits = self.kind == COMMIT
        self._depth = before + np.cumsum(begins) - np.cumsum(self._commits)
        self.transaction = before - 1 + np.cumsum(begins)
        self._base = self._led(-carried.changes if carried else 0, seen[begins])
        self.index = seen - 1 - self._base[self.transaction] if len(self._base) else seen
        self._seen, at = int(seen[-1]) if len(seen) else 0, self.start[begins]
        self.final = self._led(carried.final if carried else 0, self.buffer.numbers("u8", at + 1))
        moments = self.buffer.numbers("i8", at + 9).astype(np.int64) + EPOCH_MICROSECONDS
        self.committed = self._led(carried.committed if carried else 0, moments)
        self.numbers = self._led(carried.number if carried else 0, self.buffer.numbers("u4", at + 17))

    def _led(self, first: int, rest: npt.NDArray[np.generic]) -> Numbers:
        """Return what holds for the transactions: first that which was open already."""
        return np.concatenate([[first] if self._carried else [], rest]).astype(np.int64)

    def transactions(self) -> Transactions:
        """Return the transactions of which something is in it."""
        return Transactions(
            tuple(map(str, self.numbers.tolist())),
            # Where the record of its commit begins is known when its first change comes, and where it ends is
            # not: one byte behind the former, a stream begins with the next transaction, too.
            tuple(position.texts((self.final + 1).tolist())),
            self.committed,
        )

    def still_open(self) -> OpenTransaction | None:
        """Return the transaction that goes on behind the fetch."""
        if not len(self.kind):
            return self._carried
        if not self._depth[-1]:
            return None
        number, final, committed = (int(each[-1]) for each in (self.numbers, self.final, self.committed))
        return OpenTransaction(number, final, committed, self._seen - int(self._base[-1]))

    def position(self) -> int | None:
        """Return where the last transaction has ended, or how far the server is with none open."""
        ends = self.buffer.numbers("u8", self.start[self._commits] + 10)
        idle = (self.kind == _KEEPALIVE) & (self._depth == 0)
        known = [*ends[-1:].tolist(), *self.buffer.numbers("u8", self.start[idle][-1:] + 1).tolist()]
        return max(known, default=None)


def relation_at(data: bytes, start: int) -> Relation:
    """Read the description of a table."""
    number = struct.unpack_from(">I", data, start + 1)[0]
    schema, at = _word(data, start + 5)
    name, at = _word(data, at)
    identity, count = struct.unpack_from(">cH", data, at)
    at, columns = at + 3, []
    for _ in range(count):
        identifies = data[at] & 1 == 1
        column, at = _word(data, at + 1)
        kind, modifier = struct.unpack_from(">Ii", data, at)
        columns.append(RelationColumn(column, kind, modifier, identifies))
        at += 8
    return Relation(number, schema, name, identity.decode(), tuple(columns))


def _word(data: bytes, start: int) -> tuple[str, int]:
    end = data.index(b"\0", start)
    return data[start:end].decode(), end + 1
