"""A member of a group on the embedded log.

Invariant: a partition is read from its committed offset whenever it is taken over, so what was
not committed is delivered again, by whoever owns it next.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.errors import UsageError
from headwater.log.consumer import Consumer
from headwater.log.embedded.failures import translating_errors
from headwater.log.embedded.groups import CHECK_SECONDS, Member, fenced
from headwater.log.embedded.stream import RecordReader
from headwater.log.embedded.wakeup import Wakeup
from headwater.log.position import Position, check_position

if TYPE_CHECKING:
    from headwater.log.embedded.catalog import StoredTopic


class EmbeddedConsumer(Consumer):
    """Reads the partitions that its group gives it."""

    def __init__(
        self,
        stored: Callable[[], StoredTopic],
        member: Member,
        committed: Callable[[], dict[int, int]],
        start: Callable[[], Mapping[int, int]],
        open: Callable[[int, int], RecordReader],
    ):
        self._stored, self._member, self._committed = stored, member, committed
        self._root = member.directory.parent.parent
        self._start, self._open = start, open
        self._readers: dict[int, RecordReader] = {}
        self._delivered: dict[int, int] = {}
        self._owned: dict[int, str] = {}
        self._revoked: set[int] = set()
        """Partitions that were revoked with something delivered and not committed."""
        self._turn = 0
        self._wakeup: Wakeup | None = None
        self._closed = False

    def poll(self, timeout: float | None = None) -> pa.RecordBatch | None:
        """Return the next batch, or None after ``timeout`` seconds (None: wait for ever)."""
        if self._closed:
            raise UsageError("the consumer is closed")
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            with translating_errors(self._root):
                self._follow_group()
                batch = self._next()
            if batch is not None:
                return batch
            left = CHECK_SECONDS if deadline is None else deadline - time.monotonic()
            if left <= 0:
                return None
            assert self._wakeup is not None
            if self._wakeup.wait(min(left, CHECK_SECONDS)):
                self._member.invalidate()

    def commit(self, position: Position | None = None) -> None:
        """Commit everything that ``poll`` has returned, or up to a position."""
        self._stored()  # says so if the topic is gone
        if self._revoked:
            revoked, self._revoked = sorted(self._revoked), set()
            raise fenced(self._member.group, revoked)
        offsets = self._delivered if position is None else self._checked(position)
        if offsets:
            self._member.commit(offsets)
            left = self._delivered.items()
            self._delivered = {n: end for n, end in left if end > offsets.get(n, -1)}

    def assignment(self) -> tuple[int, ...]:
        """Return the partitions this member owns now."""
        with translating_errors(self._root):
            self._follow_group()
        return tuple(sorted(self._readers))

    def position(self) -> Position:
        """Return the offsets after the last batch of each partition this member owns."""
        offsets = {number: reader.offset for number, reader in sorted(self._readers.items())}
        topic = self._stored().topic
        return Position(topic.name, offsets, topic.id)

    def close(self) -> None:
        """Leave the group, so that others take over at once."""
        for reader in self._readers.values():
            reader.close()
        self._readers = {}
        if self._wakeup is not None:
            self._wakeup.close()
            self._wakeup = None
        if not self._closed:
            self._closed = True
            self._member.close()

    def _checked(self, position: Position) -> Mapping[int, int]:
        """Refuse to commit another topic's position, or what has not been delivered."""
        check_position(position, self._stored().topic)
        for number, offset in position.offsets.items():
            if number in self._readers and offset > self._readers[number].offset:
                raise UsageError(
                    f"offset {offset} of partition {number} has not been delivered",
                    detail=f"the next one to be delivered is {self._readers[number].offset}",
                )
        return position.offsets

    def _follow_group(self) -> None:
        owned = self._member.owned()
        if self._wakeup is not None and owned == self._owned:
            return
        kept = {number for number, term in owned.items() if self._owned.get(number) == term}
        for number in self._readers.keys() - kept:
            self._readers.pop(number).close()
            if self._delivered.pop(number, None) is not None:
                self._revoked.add(number)
        self._owned = {number: owned[number] for number in kept}
        for number in sorted(owned.keys() - kept):
            self._readers[number] = self._begin(number)  # what it refuses, the next poll meets again
            self._owned[number] = owned[number]
        if self._wakeup is not None:
            self._wakeup.close()
        heads = [self._stored().partition(number) / "head" for number in owned]
        self._wakeup = Wakeup(heads, [self._member.directory])

    def _begin(self, number: int) -> RecordReader:
        """Read on from what is committed; a group that begins commits its start, so that it is kept."""
        if not self._committed():
            self._member.commit_start(self._start())
        return self._open(number, self._committed().get(number, 0))  # one that was added: from its start

    def _next(self) -> pa.RecordBatch | None:
        """Ask the partitions in turn, so that a busy one does not starve the others."""
        numbers = sorted(self._readers)
        for step in range(len(numbers)):
            number = numbers[(self._turn + step) % len(numbers)]
            batch = self._readers[number].next()
            if batch is not None:
                self._turn += step + 1
                self._delivered[number] = self._readers[number].offset
                return batch
        return None
