"""The one interface of every log, embedded or Kafka.

``tests/contract`` holds each implementation to it. Invariant: whatever a method promises here
holds on every backend, or the backend refuses the call with an error that says why. What is the
same everywhere (checks of arguments, defaults) is done here, once; ``backend.py`` has the methods that
a backend implements for it.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from headwater import durations, topic_errors, wire_format
from headwater import topic as topics
from headwater.errors import TopicError, TopicExists, UsageError, nearest
from headwater.formats.guess import DeclarationGuess
from headwater.log import conditional
from headwater.log.appended_range import AppendedRange
from headwater.log.backend import Backend
from headwater.log.conditional import ConditionalProducer
from headwater.log.consumer import Consumer
from headwater.log.position import (
    Position,
    Start,
    check_partition,
    check_position,
    check_start,
    seek_target,
)
from headwater.log.producer import OnFull, Producer
from headwater.log.queue import Queue, check_kept
from headwater.log.queue_report import QueueStatus
from headwater.log.queue_settings import QueueSettings
from headwater.log.report import Lag, TopicInfo, Verification
from headwater.topic import Cleanup, Topic


class Log(Backend):
    """A partitioned, append-only, durable event log.

    Made by ``headwater.open``. It may be used from many threads; a process that forks opens its
    own. Reading never changes a log.
    """

    url: str

    # Topics

    def create_topic(
        self,
        name: str,
        schema: str | pa.Schema,
        *,
        key: str | Sequence[str] = (),
        event_time: str | None = None,
        partitions: int = 1,
        retention: str | timedelta | None = None,
        retention_bytes: int | None = None,
        cleanup: Cleanup = "delete",
        archive: str | None = None,
    ) -> Topic:
        """Make a topic and return it.

        - ``name``: letters, digits, ``.``, ``_`` and ``-``.
        - ``schema``: the columns as Spark DDL, or an Arrow schema; ``"JSON"`` for free JSON values.
        - ``key=()``: the column(s) by which records are placed, ``"shop,day"``.
        - ``event_time=None``: the TIMESTAMP column that says when an event happened.
        - ``partitions=1``: how many.
        - ``retention=None``: how long records are kept, ``"30 days"``; for ever if None. Of a compacted
          topic, how long tombstones are (a day if None).
        - ``retention_bytes=None``: how many bytes of a partition are kept; all if None.
        - ``cleanup="delete"``: ``"compact"`` keeps the newest record of each key.
        - ``archive=None``: a directory below the log's, to which retention moves records as Parquet.

        A program may declare its topics at every start: a topic that exists with the same
        declaration is returned as it is; with another one, ``TopicExists`` is raised. Records of
        one key go to one partition and keep their order there. ``retention`` and
        ``retention_bytes`` remove whole segments from the old end, or move them to ``archive``.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> log.create_topic("orders", "id BIGINT, item STRING", key="id", partitions=4).key
        ('id',)
        """
        topic = topics.create(
            name, schema, key=key, event_time=event_time, partitions=partitions, retention=retention,
            retention_bytes=retention_bytes, cleanup=cleanup, archive=archive,
        )  # fmt: skip
        if topic.computed:
            raise _computed(topic)
        try:
            return self._add_topic(topic)
        except TopicExists as error:
            existing = self.topic(name)
            if topic_errors.same(existing, topic):
                return existing
            error.detail = error.detail or topic_errors.different(existing, topic)
            raise

    @abstractmethod
    def topic(self, name: str) -> Topic:
        """Return a topic's declaration; ``UnknownTopic`` if there is none.

        - ``name``: of the topic.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("orders", "id BIGINT", partitions=4)
        >>> log.topic("orders").partitions
        4
        """

    @abstractmethod
    def topics(self) -> list[Topic]:
        """Return every topic, by name.

        >>> import headwater
        >>> headwater.open("memory:").topics()
        []
        """

    @abstractmethod
    def describe(self, name: str) -> TopicInfo:
        """Return a topic with its sizes, rates, oldest and newest record.

        - ``name``: of the topic.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("orders", "id BIGINT")
        >>> log.describe("orders").records
        0
        """

    @abstractmethod
    def alter_topic(self, name: str, **changes: Any) -> Topic:
        """Add nullable columns to a topic, or change its settings.

        - ``name``: of the topic.
        - ``**changes``: ``schema`` with new nullable columns at the end, ``partitions`` (more),
          ``retention``, ``retention_bytes``, ``cleanup``, ``archive``, as for ``create_topic``.

        Old records read with nulls in new columns, and open producers and readers learn of them.
        Anything else is refused with the reason, and nothing is changed then.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("orders", "id BIGINT")
        >>> log.alter_topic("orders", schema="id BIGINT, item STRING").schema.names
        ['id', 'item']
        """

    @abstractmethod
    def delete_topic(self, name: str) -> None:
        """Remove a topic, its records and archive.

        - ``name``: of the topic.

        A group that has committed offsets of it is refused (``TopicReplaced``) by a later topic of
        the same name until ``seek`` tells where it begins there; a Kafka broker forgets such
        offsets, and the group then begins as a new one does.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("orders", "id BIGINT")
        >>> log.delete_topic("orders")
        >>> log.topics()
        []
        """

    def adopt_topic(
        self,
        name: str,
        schema: str | pa.Schema,
        *,
        key: str | Sequence[str] | None = (),
        event_time: str | None = None,
        format: str = "json",
        key_format: str | None = None,
    ) -> Topic:
        """Declare a topic that another program has made on a broker, for everybody who reads it here.

        - ``name``: of the topic.
        - ``schema``: the columns of its records, as Spark DDL; fields that it leaves out are passed over.
        - ``key=()``: the column or columns of the record's key.
        - ``event_time=None``: the column that tells when a record happened.
        - ``format="json"``: how values are written: ``"json"``, ``"avro"``, ``"protobuf"`` and
          ``"json_schema"`` with a schema registry, ``"avro:FILE.avsc"`` without one, ``"csv"``, ``"text"``,
          ``"bytes"``.
        - ``key_format=None``: how keys are written, the same formats: the key's columns are then read from
          the record's key, and not from its value.

        The declaration is written beside the topic, of which nothing is changed: no setting, no record.
        ``disown_topic`` takes it back. A log in a directory or in memory has no topics of others.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> log.adopt_topic("orders", "id BIGINT")
        Traceback (most recent call last):
        headwater.errors.UsageError: topic "orders" cannot be adopted: no other program makes topics here
        """
        raise _no_foreign(name, "adopted")

    def guess_declaration(self, name: str) -> DeclarationGuess | None:
        """Guess from its newest records how a topic could be declared that another program has made.

        - ``name``: of the topic.

        The guess has the columns, key, event time and formats as the line of a pipeline (``line``), for
        people to correct. None where the topic has its declaration, as every topic of a log in a directory
        or in memory.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("orders", "id BIGINT")
        >>> log.guess_declaration("orders") is None
        True
        """
        self.topic(name)
        return None

    def disown_topic(self, name: str) -> None:
        """Take back the declaration of a topic that was adopted; its records stay as they are.

        - ``name``: of the topic.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> log.disown_topic("orders")
        Traceback (most recent call last):
        headwater.errors.UsageError: topic "orders" cannot be disowned: no other program makes topics here
        """
        raise _no_foreign(name, "disowned")

    @abstractmethod
    def read_as(self, topic: Topic) -> None:
        """Read a topic as a declaration says, in this object alone: nothing is written.

        - ``topic``: the declaration. Of a topic that was made here, or adopted, it adds the columns that are
          computed, the event time and the key if they are that, and who is the producer; one that another
          program has made and nobody has adopted is read as the whole of it says.

        >>> import headwater
        >>> from headwater import topic
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("orders", "id BIGINT, at BIGINT")
        >>> log.read_as(topic.create("orders", "id BIGINT, at BIGINT", event_time="timestamp_millis(at)"))
        >>> log.topic("orders").read_schema.names
        ['id', 'at', 'event_time']
        """

    # Records

    def producer(
        self,
        topic: str,
        id: str | None = None,
        *,
        linger: str | timedelta = "20 milliseconds",
        buffer: int = 500_000,
        on_full: OnFull = "block",
    ) -> Producer:
        """Return a producer; one with an ``id`` fences its predecessor of the same id.

        - ``topic``: where it appends.
        - ``id=None``: its name, for sequence numbers that outlive a crash; a random one if None.
        - ``linger="20 milliseconds"``: how long a row waits for others to share a batch.
        - ``buffer=500000``: how many rows may wait.
        - ``on_full="block"``: what ``send`` does when the buffer is full: ``"block"`` waits, ``"drop"``
          leaves the row out and counts it, ``"error"`` raises ``BufferFull``.

        A producer with an ``id`` goes on with the sequence numbers of its predecessor, so what it sends
        again after a crash, with the same numbers, is not stored twice.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("orders", "id BIGINT")
        >>> with log.producer("orders") as producer:
        ...     producer.send({"id": 1})
        ...     print(producer.flush().brief)
        orders:0=1
        """
        if id is not None:
            _check_id(id)
        wait = linger if isinstance(linger, timedelta) else durations.interval(linger)
        return Producer(self._appender(topic, id), linger=wait, buffer=buffer, on_full=on_full)

    def conditional_producer(self, topic: str, *, id: str | None = None) -> ConditionalProducer:
        """Return a producer whose appends are refused if another came first.

        - ``topic``: where it appends; it has a key, and its records stay for ever.
        - ``id=None``: its name: one of the same id fences its predecessor. On Kafka there is one writer of a
          topic, so one with any id does.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("accounts", "id STRING", key="id")
        >>> with log.conditional_producer("accounts") as producer:
        ...     producer.append([{"id": "ada"}]).offsets
        range(0, 1)
        """
        if id is not None:
            _check_id(id)
        conditional.check_topic(self.topic(topic))
        return ConditionalProducer(self._conditional_appender(topic, id))

    def read(
        self,
        topic: str,
        partition: int | None = None,
        start: Start = "earliest",
        end: Start = "latest",
        *,
        meta: bool = False,
        follow: bool | threading.Event = False,
    ) -> Iterator[pa.RecordBatch]:
        """Read records as Arrow batches, partition after partition, each in its order.

        - ``topic``: its name.
        - ``partition=None``: one of them; all, one after the other, if None.
        - ``start="earliest"``: an end of the log, an offset, a time of receipt, or a ``Position``.
        - ``end="latest"``: the same, exclusive, and taken when the call is made; an offset may lie past the
          end.
        - ``meta=False``: True adds the columns of ``headwater.record.META``: offset, producer, times.
        - ``follow=False``: True goes on with records as they arrive, and never ends; with an event, it ends
          within seconds after that is set.

        Compacted topics have a ``_deleted`` column. A start that is no longer retained, or lies past the
        end, raises ``OffsetLost``, which says how many records are gone; a position of a topic that was
        deleted and made again raises ``TopicReplaced``.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("orders", "id BIGINT")
        >>> with log.producer("orders") as producer:
        ...     producer.send_batch([{"id": 1}, {"id": 2}, {"id": 3}])
        >>> [batch.to_pydict() for batch in log.read("orders", start=1)]
        [{'id': [2, 3]}]
        """
        declared = self.topic(topic)
        if partition is not None:
            check_partition(topic, partition, declared.partitions)
        numbers = range(declared.partitions) if partition is None else [partition]
        first = self._resolve_offsets(declared, start, numbers)
        if follow is not False:
            stop = None if follow is True else follow
            return self._follow(declared, first, meta, partition is None, stop)
        return self._read_between(declared, first, self._end_offsets(declared, end, numbers), meta)

    def resolve(self, topic: str, to: Start) -> Position:
        """Return the offsets that a start stands for now, in every partition, with the topic's identity.

        - ``topic``: its name.
        - ``to``: ``"earliest"``, ``"latest"``, an offset, a time of receipt, or a ``Position``.

        A position stands for itself, and for the earliest offset where it names no partition. An
        offset stands for itself in every partition, or for the end of one that is shorter. What the
        topic does not hold is refused: ``OffsetLost`` where retention has passed it or it lies past
        the end, ``TopicReplaced`` for a position of an earlier topic of the same name.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("orders", "id BIGINT")
        >>> log.resolve("orders", "latest").offsets
        {0: 0}
        """
        declared = self.topic(topic)
        offsets = self._resolve_offsets(declared, to, range(declared.partitions))
        return Position(topic, offsets, declared.id)

    def appended_ranges(self, topic: str, partition: int, start: int | Position) -> Iterator[AppendedRange]:
        """Tell what lies in a partition from an offset on, without reading the records.

        - ``topic``: its name.
        - ``partition``: its number.
        - ``start``: an offset, or a position with one.

        Each append is told with its producer, its newest event time, and the producers' marks. The embedded
        log knows them from its headers; Kafka's records are read for that, ahead of who asks. A position
        of a topic that was deleted and made again raises ``TopicReplaced``, and so does a topic that
        is made again while its ranges are asked for.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("orders", "id BIGINT")
        >>> with log.producer("orders") as producer:
        ...     producer.send_batch([{"id": 1}, {"id": 2}])
        >>> [each.end for each in log.appended_ranges("orders", 0, 0)]
        [2]
        """
        declared = self.topic(topic)
        check_partition(topic, partition, declared.partitions)
        check_start(start, declared)
        at = start.offsets.get(partition, 0) if isinstance(start, Position) else start
        return self._appended_ranges(declared, partition, at)

    def derived_directory(self, topic: str) -> Path | None:
        """Return where data that is derived from a topic may be kept beside it, and goes with it.

        - ``topic``: its name.

        None where there is no such place, as on a broker.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("orders", "id BIGINT")
        >>> log.derived_directory("orders").name
        'orders'
        """
        self.topic(topic)
        return None

    def prefetch_into(self, root: Path) -> None:
        """Keep what ``appended_ranges`` has to read of a broker in files, for others on this machine.

        - ``root``: the folder. The embedded log, which is read where it lies, has no need of one.

        >>> import headwater
        >>> headwater.open("memory:").prefetch_into(Path("prefetched"))
        """

    def read_ahead(self, start: Position) -> None:
        """Begin to read what ``appended_ranges`` will be asked for, in all partitions at once, and return.

        - ``start``: where they will be asked for from. The embedded log knows without reading.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("orders", "id BIGINT")
        >>> log.read_ahead(log.resolve("orders", "earliest"))
        """

    # Groups

    @abstractmethod
    def consumer(self, topic: str, group: str, *, start: Start = "earliest", meta: bool = False) -> Consumer:
        """Join a consumer group and return its new member.

        - ``topic``: its name.
        - ``group``: its name; it is made when its first member joins.
        - ``start="earliest"``: where the group begins in a partition of which it has committed nothing.
        - ``meta=False``: True adds the columns of ``headwater.record.META``.

        The group's living members share the partitions; other groups do not notice.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("orders", "id BIGINT")
        >>> with log.producer("orders") as producer:
        ...     producer.send({"id": 1})
        >>> with log.consumer("orders", group="billing") as consumer:
        ...     print(consumer.poll(timeout=1.0).to_pylist())
        ...     consumer.commit()
        [{'id': 1}]
        """

    @abstractmethod
    def groups(self) -> list[str]:
        """Return the names of all groups that have committed or have members.

        >>> import headwater
        >>> headwater.open("memory:").groups()
        []
        """

    def lag(self, group: str) -> list[Lag]:
        """Return how far a group is behind, per topic and partition.

        - ``group``: its name; one that is not there is an error.

        Counted from what the group has committed, or from the earliest record where it has
        committed nothing yet.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("orders", "id BIGINT")
        >>> _ = log.seek("billing", "orders", "earliest")
        >>> [each.records for each in log.lag("billing")]
        [0]
        """
        found = self._lag(group)
        if not found and group not in self.groups():
            raise self._no_group(group)
        return found

    def seek(self, group: str, topic: str, to: Start) -> Position:
        """Move a group's committed offsets and return them.

        - ``group``: its name.
        - ``topic``: in which topic.
        - ``to``: ``"earliest"``, ``"latest"``, an offset, a time of receipt, or a ``Position``, which moves
          only the partitions it names.

        On the embedded log living members start there again at their next poll; Kafka refuses to move a
        group that has members.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("orders", "id BIGINT")
        >>> log.seek("billing", "orders", "earliest").brief
        'orders:0=0'
        """
        topics.check_name("group", group)
        target, declared = seek_target(to, self.resolve(topic, to)), self.topic(topic)
        check_position(target, declared)  # it may have been made again meanwhile
        self._set_committed(group, declared, target.offsets)
        return target

    def delete_group(self, group: str) -> None:
        """Forget what a group has committed; refused while it has living members.

        - ``group``: its name; one that is not there is an error.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("orders", "id BIGINT")
        >>> _ = log.seek("billing", "orders", "earliest")
        >>> log.delete_group("billing")
        """
        if group not in self.groups():
            raise self._no_group(group)
        if not self._forget_group(group):
            raise UsageError(
                f'group "{group}" has living members and cannot be deleted', hint="stop its consumers first"
            )

    # Queues

    def queue(
        self, topic: str, group: str, *, settings: QueueSettings | None = None, start: Start = "earliest"
    ) -> Queue:
        """Open the records of a topic as messages that the consumers of a group share.

        - ``topic``: its name; any topic but a compacted one.
        - ``group``: its name; the queue is made when it is first opened. A group has its own queue, whatever
          others have received.
        - ``settings=None``: how it behaves, kept with it; as it was made, or ``QueueSettings()``, if None.
        - ``start="earliest"``: where a queue that is new begins.

        Many consumers share a partition, and each message is acknowledged by itself, so that one that takes
        long holds no other up. A topic that was deleted and made again is refused (``TopicReplaced``).

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("emails", "to STRING, body STRING")
        >>> with log.producer("emails") as producer:
        ...     producer.send({"to": "ada", "body": "hello"})
        >>> with log.queue("emails", group="mailers") as queue:
        ...     for message in queue.receive(10, visible_after="30 seconds", timeout=1):
        ...         print(message.value["to"], message.deliveries)
        ...         message.ack()
        ada 1
        """
        declared = self.topic(topic)
        topics.check_name("group", group)
        check_start(start, declared)
        if settings is not None and not isinstance(settings, QueueSettings):
            raise UsageError(
                f"settings of a queue are QueueSettings, not {type(settings).__name__}",
                hint="write settings=QueueSettings(ordered=True)",
            )
        check_kept(declared)
        return self._open_queue(declared, group, settings, start)

    @abstractmethod
    def has_queue(self, topic: str, group: str) -> bool:
        """Tell whether a group has a queue over a topic.

        - ``topic``: its name.
        - ``group``: its name.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("emails", "to STRING")
        >>> log.has_queue("emails", "mailers")
        False
        """

    @abstractmethod
    def queues(self) -> list[QueueStatus]:
        """Return how every queue of the log is doing, by topic and group; to look makes none, and opens none.

        One whose topic was deleted, or made again, is told with its ``problem``; ``delete_queue`` removes it.
        On Kafka those are told that something was received from, and of each only what is dead.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("emails", "to STRING")
        >>> log.queue("emails", group="mailers").close()
        >>> [(queue.topic, queue.group, queue.depth) for queue in log.queues()]
        [('emails', 'mailers', 0)]
        """

    @abstractmethod
    def delete_queue(self, topic: str, group: str) -> None:
        """Forget how far a queue has got and what waits in it; its topic and its dead letters stay.

        - ``topic``: its topic's name, also of a topic that is gone.
        - ``group``: its group; one that has living consumers is refused.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("emails", "to STRING")
        >>> log.queue("emails", group="mailers").close()
        >>> log.delete_queue("emails", "mailers")
        """

    # Maintenance

    @abstractmethod
    def compact(self, topic: str) -> None:
        """Apply the topic's cleanup now: retention, or compaction to the newest of each key.

        - ``topic``: its name.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("prices", "id BIGINT", key="id", cleanup="compact")
        >>> log.compact("prices")
        """

    @abstractmethod
    def verify(self, topic: str | None = None) -> Verification:
        """Check every checksum, and the sequence of every producer.

        - ``topic=None``: one topic; all if None.

        >>> import headwater
        >>> headwater.open("memory:").verify().ok
        True
        """

    @abstractmethod
    def close(self) -> None:
        """Release files and connections; producers and consumers are closed on their own.

        >>> import headwater
        >>> headwater.open("memory:").close()
        """

    def _no_group(self, group: str) -> UsageError:
        known = self.groups()
        listed = "groups: " + ", ".join(known) if known else "there are no groups yet"
        return UsageError(f'no group "{group}"', hint=nearest(group, known) or listed)


def _check_id(id: str) -> None:
    try:
        size = len(id.encode())
    except (UnicodeEncodeError, AttributeError):
        size = 0
    if not 0 < size <= 200:
        raise UsageError("a producer's id is text of 1 to 200 bytes", hint='as in id="shop-1"')


def no_formats(title: str, format: str, key_format: str | None) -> UsageError:
    """Return the error for formats of a topic, in a log whose records have types of their own."""
    setting = f'key_format="{key_format}"' if format == wire_format.JSON else f'format="{format:.60}"'
    return UsageError(
        f"{title} cannot have {setting}: this log keeps typed rows",
        detail="a format says how other programs write to a Kafka broker",
        hint="leave it out, and send rows",
    )


def _no_foreign(name: str, done: str) -> UsageError:
    return UsageError(f'topic "{name}" cannot be {done}: no other program makes topics here')


def _computed(topic: Topic) -> TopicError:
    texts = [each.text for each in topic.computed]
    return TopicError(
        f'topic "{topic.name}" cannot be made with "{texts[0]}": it stores columns',
        hint="name columns here; a source of a pipeline may compute its event time and key when it reads",
    )
