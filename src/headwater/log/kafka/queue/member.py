"""One share consumer: what it has received, and the answers that it owes.

Kafka's client receives no more before all that it received last was answered, and may be used by one thread
at a time. Invariant: an answer is sent to the broker before its call returns; of a message that was answered,
or whose time is over, another answer is refused.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, NamedTuple

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException

from headwater.log.kafka import failures
from headwater.log.kafka.config import Config

ACCEPT, RELEASE, REJECT = 1, 2, 3
"""What the broker is told of a message."""
_COMMIT_SECONDS = 30.0
_Illegal: type[Exception] = getattr(confluent_kafka, "IllegalStateException", RuntimeError)
"""What its client raises for a message that it does not know any more; older ones have no share consumers."""


class RecordPlace(NamedTuple):
    """Where a message's record is."""

    topic: str
    partition: int
    offset: int


class ShareMember:
    """A member of a share group."""

    def __init__(self, config: Config, group: str, topics: Sequence[str], lock: timedelta):
        self._config, self._group = config, group
        self._lock_seconds = lock.total_seconds()
        self._lock = threading.Lock()
        self._open: set[RecordPlace] = set()
        self._polled = 0.0
        self.turn = 0
        """How often it has received: a message may come to it again, as another delivery."""
        self._client = confluent_kafka.ShareConsumer(config.share_consumer(group))
        self._client.subscribe(list(topics))

    @property
    def free(self) -> bool:
        """Whether all that it received is answered, or too old to be."""
        with self._lock:
            if self._open and self.expired:
                self._answer(self._open, RELEASE)  # they are others' already: this is for the client alone
                self._open = set()
            return not self._open

    @property
    def expired(self) -> bool:
        """Whether the time is over for what it received last."""
        return time.monotonic() - self._polled > self._lock_seconds

    def poll(self, timeout: float) -> list[Any]:
        """Return what the broker gives, after some seconds at the most."""
        with self._lock, failures.translating_errors(self._config, f'receive from group "{self._group}"'):
            self._polled = time.monotonic()
            found = list(self._client.poll(timeout))
            self.turn += 1
            self._polled = time.monotonic()
            good = [each for each in found if each.error() is None]
            self._open = {place(each) for each in good}
            for error in (each.error() for each in found):
                if error is not None and error.code() not in failures.TRANSIENT:
                    raise KafkaException(error)
            return good

    def answer(self, places: Iterable[RecordPlace], kind: int, turn: int) -> set[RecordPlace]:
        """Send an answer for messages of a turn, and return those that it came too late for."""
        asked = set(places)
        with self._lock:
            ours = asked & self._open if turn == self.turn else set()
            self._open -= ours
            return asked - ours | self._answer(ours, kind)

    def holds(self, place: RecordPlace, turn: int) -> bool:
        """Tell whether a message of a turn is still to be answered, as far as is known here."""
        with self._lock:
            return turn == self.turn and place in self._open and not self.expired

    def close(self) -> None:
        """Give back what was not answered, and leave the group."""
        with self._lock, suppress(KafkaException, _Illegal):
            if self._open:
                self._answer(self._open, RELEASE)
            self._client.close()

    def _answer(self, places: set[RecordPlace], kind: int) -> set[RecordPlace]:
        late = {each for each in places if not self._mark(each, kind)}
        if len(late) == len(places):
            return late
        with failures.translating_errors(self._config, f'answer for messages of group "{self._group}"'):
            told = self._client.commit_sync(_COMMIT_SECONDS)
        refused = {(where.topic, where.partition) for where, error in told.items() if self._refused(error)}
        return late | {each for each in places if each[:2] in refused}

    def _mark(self, at: RecordPlace, kind: int) -> bool:
        try:
            self._client.acknowledge_offset(*at, kind)  # type: ignore[arg-type]  # a number is one
        except _Illegal:
            return False
        return True

    def _refused(self, error: KafkaException | None) -> bool:
        """Tell whether the broker says that messages are another's; raise anything else that it says."""
        if error is None:
            return False
        if error.args[0].code() == KafkaError.INVALID_RECORD_STATE:
            return True
        raise error


def place(message: Any) -> RecordPlace:
    """Return where a message's record is."""
    return RecordPlace(message.topic(), message.partition(), message.offset())
