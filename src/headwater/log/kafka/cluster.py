"""One connection to the cluster for everything but records: topics, offsets, groups.

Invariants: every call ends within a bounded time, and an unreachable broker is told as such; a
client outlives what it was asked, also where another thread takes a new one meanwhile.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import (
    OFFSET_INVALID,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it exports them, but not for mypy
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from headwater.errors import HeadwaterError, LogUnavailable
from headwater.log.kafka import failures
from headwater.log.kafka.config import Config
from headwater.log.position import Extent

EARLIEST: Any = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
LATEST: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]
NEWEST: Any = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]

COMMITTED: Any = IsolationLevel.READ_COMMITTED
UNCOMMITTED: Any = IsolationLevel.READ_UNCOMMITTED

REACH_SECONDS = 5.0
"""How long an unreachable broker is waited for when a log is opened."""
ANSWER_SECONDS = 1.0
"""How long it is waited for before it is asked whether one has said no."""
CALL_SECONDS = 30.0
ASK_SECONDS = 5.0
REPEAT_SECONDS = 15.0
"""How long what only looks something up is asked again: a broker that has died is replaced within nine."""

A = TypeVar("A")


class BrokerTopic(NamedTuple):
    """A topic as the broker has it."""

    id: str
    """Differs for a topic that was deleted and made again."""
    partitions: int
    ready: bool


class TimedOffset(NamedTuple):
    """An offset and the time of its record, in milliseconds, if the broker told it."""

    offset: int
    timestamp: int


def since(milliseconds: int) -> Any:
    """Return what stands for the first record received at a time or later."""
    return OffsetSpec.for_timestamp(milliseconds)


class Cluster:
    """The broker's administration."""

    def __init__(self, config: Config):
        self.config = config
        self._troubles: deque[KafkaError] = deque(maxlen=20)
        try:
            self.admin = self._client()
        except KafkaException as error:
            raise failures.bad_option(error, config) from None
        self._reach()

    def names(self) -> list[str]:
        """Return every topic that is not internal."""
        with failures.translating_errors(self.config, "list topics"):
            known = self.admin.list_topics(timeout=CALL_SECONDS).topics
        return sorted(name for name in known if not name.startswith("__"))

    def find(self, names: Iterable[str]) -> dict[str, BrokerTopic]:
        """Return those of the topics that are there."""
        asked = list(names)
        if not asked:
            return {}
        named = f'topic "{asked[0]}"' if len(asked) == 1 else "topics"
        return self._repeated(lambda admin: _described(admin, asked), f"look up {named}")

    def create(self, name: str, partitions: int, settings: Mapping[str, str]) -> BrokerTopic:
        """Make a topic and wait until it can be written."""
        new = NewTopic(name, partitions, -1, config=dict(settings))
        self._change(lambda admin: admin.create_topics([new]), f'create topic "{name}"')
        return self._until(name, lambda found: found is not None and found.ready)  # type: ignore[return-value]

    def delete(self, name: str) -> None:
        """Remove a topic and wait until it is gone."""
        self._change(lambda admin: admin.delete_topics([name]), f'delete topic "{name}"')
        self._until(name, lambda found: found is None)

    def grow(self, name: str, partitions: int) -> None:
        """Give a topic more partitions."""
        new = NewPartitions(name, partitions)
        self._change(lambda admin: admin.create_partitions([new]), f'alter topic "{name}"')
        self._until(name, lambda found: found is not None and found.ready and found.partitions == partitions)

    def configure(self, name: str, settings: Mapping[str, str]) -> None:
        """Change a topic's settings."""
        to = AlterConfigOpType.SET
        entries = [ConfigEntry(key, value, incremental_operation=to) for key, value in settings.items()]
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
        self._change(lambda admin: admin.incremental_alter_configs([resource]), f'alter topic "{name}"')

    def offsets(
        self, topic: str, partitions: Iterable[int], spec: Any, isolation: Any = COMMITTED
    ) -> dict[int, TimedOffset]:
        """Return the offset that a spec stands for in each partition, of whole transactions only."""
        asked = {TopicPartition(topic, partition): spec for partition in partitions}
        if not asked:
            return {}

        def ask(admin: AdminClient) -> dict[int, TimedOffset]:
            futures = admin.list_offsets(asked, isolation_level=isolation, request_timeout=ASK_SECONDS)
            told = {where.partition: _answer(future) for where, future in futures.items()}
            if any(each.offset == OFFSET_INVALID for each in told.values()):
                # So it says, without an error, when the connection is cut before the answer has come.
                raise KafkaException(KafkaError(KafkaError._TRANSPORT))
            return {partition: TimedOffset(each.offset, each.timestamp) for partition, each in told.items()}

        return self._repeated(ask, f'look up offsets of topic "{topic}"')

    def ends(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        """Return the offset after the last whole transaction of each partition."""
        told = self.offsets(topic, partitions, LATEST)
        return {partition: each.offset for partition, each in told.items()}

    def starts(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        """Return the earliest offset of each partition."""
        told = self.offsets(topic, partitions, EARLIEST)
        return {partition: each.offset for partition, each in told.items()}

    def extents(self, topic: str, partitions: Iterable[int]) -> dict[int, Extent]:
        """Return what each partition holds, with transactions that are still open.

        What a producer has flushed may lie behind another one's open transaction.
        """
        starts, ends = self.starts(topic, partitions), self.offsets(topic, partitions, LATEST, UNCOMMITTED)
        return {number: Extent(starts[number], each.offset) for number, each in ends.items()}

    def _repeated(self, ask: Callable[[AdminClient], A], doing: str) -> A:
        """Return the answer to what may be asked again, where a connection was cut or a leader has gone."""
        deadline = time.monotonic() + REPEAT_SECONDS
        with failures.translating_errors(self.config, doing):
            while True:
                admin = self.admin
                try:
                    return ask(admin)
                except KafkaException as error:
                    if error.args[0].code() not in failures.TRANSIENT or time.monotonic() > deadline:
                        raise
                time.sleep(0.2)
                if self.admin is admin:  # no other thread has taken a new one
                    # The client remembers who leads, and asks no more where it has learned that once.
                    self.admin = self._client()

    def _client(self) -> AdminClient:
        return AdminClient(self.config.admin() | {"error_cb": self._troubles.append})

    def _change(self, change: Callable[[AdminClient], Mapping[Any, Future[Any]]], doing: str) -> None:
        admin = self.admin
        with failures.translating_errors(self.config, doing):
            for future in change(admin).values():
                _answer(future)

    def _until(self, name: str, holds: Callable[[BrokerTopic | None], bool]) -> BrokerTopic | None:
        deadline = time.monotonic() + CALL_SECONDS
        while time.monotonic() < deadline:
            found = self.find([name]).get(name)
            if holds(found):
                return found
            time.sleep(0.02)
        raise LogUnavailable(
            f'Kafka did not finish changing topic "{name}"', detail=f"waited {CALL_SECONDS:.0f} seconds"
        )

    def _reach(self) -> None:
        deadline = time.monotonic() + REACH_SECONDS
        while True:
            try:
                self.admin.list_topics("__headwater", timeout=ANSWER_SECONDS)
                return
            except KafkaException as error:
                self.admin.poll(0)  # serves the callback that knows the reason
                troubles = [*self._troubles, error.args[0]]
                if time.monotonic() > deadline or any(map(failures.is_denial, troubles)):
                    self._refuse(troubles)

    def _refuse(self, troubles: list[KafkaError]) -> None:
        denied = [trouble for trouble in troubles if failures.is_denial(trouble)]
        telling = (denied or troubles)[0]
        if denied:
            refused = failures.translated(telling, self.config, f"open {self.config.url}")
            raise self._with_reason(refused) from None
        raise LogUnavailable(
            f"cannot reach Kafka at {self.config.servers}",
            detail=self.config.scrubbed(telling.str()),
            hint="check the address, that the broker runs, and its security.protocol",
        )

    def _with_reason(self, refused: HeadwaterError) -> HeadwaterError:
        """Return an error with why the broker's certificate is not believed, where that is it."""
        if "verify failed" in (refused.detail or ""):
            why = failures.certificate_problem(self.config.servers, self.config.ca)
            if why is not None:
                refused.detail = f"the certificate of the broker is not believed: {why}"
                refused.hint = failures.tls_hint(f"verify failed: {why}")
        return refused


def _described(admin: AdminClient, names: list[str]) -> dict[str, BrokerTopic]:
    found = {}
    asked = admin.describe_topics(TopicCollection(names), request_timeout=ASK_SECONDS)
    for name, future in asked.items():
        try:
            told = _answer(future)
        except KafkaException as error:
            if error.args[0].code() in failures.UNKNOWN | {KafkaError.TOPIC_EXCEPTION}:
                continue
            raise
        ready = bool(told.partitions) and all(p.leader is not None for p in told.partitions)
        found[name] = BrokerTopic(str(told.topic_id), len(told.partitions), ready)
    return found


def _answer(future: Future[Any]) -> Any:
    """Wait for an answer; that none comes is an error like others."""
    try:
        return future.result(CALL_SECONDS)
    except TimeoutError:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from None
