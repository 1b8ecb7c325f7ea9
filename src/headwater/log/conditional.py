"""Appends that are refused if another came first: one mechanism for versions, boundaries and request ids.

Every record has tags: its key, and texts of its sender's. A condition says that no record with a key, or with
some tags, has come since a version; if one has, nothing is written. Threads that append at the same time
share a write and a sync.

Invariant: an append is whole or not at all, durable when it returns, and its conditions held at that moment,
whatever other threads and processes append.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from headwater import durations
from headwater.closing import Closing
from headwater.errors import RowError, TopicError, UsageError
from headwater.log.expected_version import Check, Condition, ConditionalAppender, Outgoing, Proposal
from headwater.log.leader_queue import LeaderQueue
from headwater.log.position import Position, check_position
from headwater.log.process import check_process
from headwater.log.tags import checked_tags, header, headers_column, key_tag, text_tag
from headwater.record import Headers
from headwater.topic import Topic
from headwater.values import keys, rows
from headwater.values.one_value import fitted
from headwater.values.plain_rows import from_plain_rows
from headwater.values.sent_rows import Row, checked_headers

GROUP = 1000
"""How many appends of threads share a write at the most."""
_CACHED_KEYS = 100_000


@dataclass(frozen=True)
class Appended:
    """Where rows lie that were appended together: side by side, in one partition."""

    position: Position
    """The position behind them."""
    partition: int
    offsets: range
    """The offset of each row."""


class _Asked(NamedTuple):
    """What a caller wants appended."""

    rows: Sequence[Row]
    headers: list[list[tuple[str, bytes]] | None]
    proposal: Proposal


class _Converted(NamedTuple):
    """Appends whose rows fit, and those rows."""

    group: Sequence[_Asked]
    batch: pa.RecordBatch
    headers: pa.Array | None


class ConditionalProducer(Closing):
    """Appends rows to one topic if what they were decided on still holds: ``Log.conditional_producer``.

    It may be used from many threads. On the embedded log many producers may append to a topic, in any
    process; on Kafka one, which fences the one before.

    >>> import headwater
    >>> log = headwater.open("memory:")
    >>> _ = log.create_topic("accounts", "id STRING, cents BIGINT", key="id")
    >>> with log.conditional_producer("accounts") as producer:
    ...     version = producer.version("ada")
    ...     row = {"id": "ada", "cents": 500}
    ...     made = producer.append([row], conditions=[Condition("ada", after=version)])
    ...     version, made.position.brief, producer.version("ada")
    (0, 'accounts:0=1', 1)
    """

    def __init__(self, appender: ConditionalAppender):
        self.id = appender.id
        self._process = os.getpid()
        self._appender = appender
        self._queue = LeaderQueue[_Asked, int](self._append, GROUP)
        self._keys: OrderedDict[Any, tuple[bytes, int]] = OrderedDict()
        self._closed = False

    def append(
        self,
        rows: Sequence[Row],
        *,
        conditions: Sequence[Condition] = (),
        tags: Sequence[str] | Sequence[Sequence[str]] = (),
        headers: Headers | None = None,
    ) -> Appended:
        """Append rows of one partition if every condition holds, whole or not at all.

        - ``rows``: dicts; one, or several whose keys lie in one partition, as those of one key do.
        - ``conditions=()``: what must hold; none appends in any case.
        - ``tags=()``: texts under which the rows are found: a list for all, or a list of such lists, one for
          each row.
        - ``headers=None``: headers of every row, as for ``Producer.send``.

        What was appended is durable when the call returns. ``Conflict`` says which record came first; nothing
        is written then. After ``LogUnavailable`` the rows may have been stored or not: a tag of the request's
        own, and a condition that no record has it, let the call be repeated.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("names", "name STRING, owner STRING", key="name")
        >>> with log.conditional_producer("names") as producer:
        ...     for owner in ("ada", "bob"):
        ...         try:
        ...             made = producer.append([{"name": "x", "owner": owner}], conditions=[Condition("x")])
        ...         except headwater.errors.Conflict as conflict:
        ...             print(owner, "came after the record at offset", conflict.offset)
        bob came after the record at offset 0
        """
        self._check_open()
        topic = self._appender.topic()
        if not rows:
            raise UsageError(f'an append to topic "{topic.name}" has no rows')
        every = _of_each(tags, len(rows))
        checked = checked_headers(headers)
        placed = [self._place_of(row, topic) for row in rows]
        numbers = {number for _, number in placed}
        if len(numbers) > 1:
            raise UsageError(
                f'rows of one append to topic "{topic.name}" lie in several partitions',
                detail="an append is whole or not at all, and partitions are written one by one",
                hint="give them one key, and others as tags; or append them one after the other",
            )
        digests = [[key_tag(key), *map(text_tag, each)] for (key, _), each in zip(placed, every, strict=True)]
        checks = [self._check(each, topic) for each in conditions]
        [number] = numbers
        asked = _Asked(rows, [header(each, checked) for each in every], Proposal(number, digests, checks))
        first = self._queue.submit(asked)
        end = first + len(rows)
        return Appended(Position(topic.name, {number: end}, topic.id), number, range(first, end))

    def version(self, key: Any) -> int:
        """Return the offset behind the key's newest record, or 0 if there is none.

        - ``key``: its value, a tuple of several.

        It names what an append was decided on: ``Condition(key, after=version)``. Only durable records count.
        """
        return self.newest(key=key)

    def newest(self, *, key: Any = None, tags: Sequence[str] = ()) -> int:
        """Return the offset behind the newest record with a key and all of some tags, or 0 if there is none.

        - ``key=None``: the key's value, a tuple of several.
        - ``tags=()``: texts that the record has, all of them.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("accounts", "id STRING", key="id")
        >>> with log.conditional_producer("accounts") as producer:
        ...     made = producer.append([{"id": "ada"}], tags=["request:7"])
        ...     producer.newest(key="ada", tags=["request:7"]), producer.newest(key="ada", tags=["request:8"])
        (1, 0)
        """
        self._check_open()
        if key is None:
            raise UsageError("a version is that of a key", hint="for tags alone, take `position()`")
        check = self._check(Condition(key, tuple(tags)), self._appender.topic())
        return max(self._appender.newest(check.tags, check.after).values(), default=-1) + 1

    def partition(self, key: Any) -> int:
        """Return the partition in which the records of a key lie.

        - ``key``: its value, a tuple of several.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("accounts", "id STRING", key="id", partitions=4)
        >>> with log.conditional_producer("accounts") as producer:
        ...     producer.partition("ada") == producer.append([{"id": "ada"}]).partition
        True
        """
        return self._place(key, self._appender.topic())[1]

    def position(self) -> Position:
        """Return where the topic ends now, as of when a decision over tags is made.

        Ask for it first, then read, then append with ``Condition(tags=…, after=position)``.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("accounts", "id STRING", key="id")
        >>> with log.conditional_producer("accounts") as producer:
        ...     producer.position().brief
        'accounts:0=0'
        """
        self._check_open()
        topic = self._appender.topic()
        return Position(topic.name, self._appender.ends(), topic.id)

    def read(
        self,
        *,
        key: Any = None,
        tags: Sequence[str] = (),
        after: int | Position = 0,
        meta: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Read the records with a key and all of some tags, found by the index.

        - ``key=None``: the key's value, a tuple of several; any if None.
        - ``tags=()``: texts that the records have, all of them.
        - ``after=0``: a version or a ``Position``: the first offset to be read.
        - ``meta=False``: True adds the columns of ``headwater.record.META``.

        Records come partition after partition, each in its order; only durable ones.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("accounts", "id STRING, cents BIGINT", key="id")
        >>> with log.conditional_producer("accounts") as producer:
        ...     for cents in (1, 2):
        ...         made = producer.append([{"id": "ada", "cents": cents}], tags=[f"request:{cents}"])
        ...     [row["cents"] for batch in producer.read(tags=["request:2"]) for row in batch.to_pylist()]
        [2]
        """
        self._check_open()
        check = self._check(Condition(key, tuple(tags), after), self._appender.topic())
        yield from self._appender.read(check.tags, check.after, meta)

    def close(self) -> None:
        """Release the producer; closing again does nothing. A ``with`` block does it at its end.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("accounts", "id STRING", key="id")
        >>> log.conditional_producer("accounts").close()
        """
        if not self._closed:
            self._closed = True
            self._appender.close()

    def _check_open(self) -> None:
        check_process(self._process)
        if self._closed:
            raise UsageError(f'producer "{self.id}" is closed')

    def _append(self, group: Sequence[_Asked]) -> list[int | BaseException]:
        """Append for several callers at once; one whose rows do not fit is left out."""
        topic = self._appender.topic()
        converted, errors = _converted(group, topic)
        if not converted.group:
            return list(errors)  # type: ignore[arg-type]  # each has one
        outgoing = Outgoing(converted.batch, converted.headers, topic, durations.now())
        proposals = [asked.proposal for asked in converted.group]
        outcomes = iter(self._appender.append(proposals, outgoing))
        return [error if error is not None else next(outcomes) for error in errors]

    def _check(self, condition: Condition, topic: Topic) -> Check:
        """Return a condition as the index looks it up, or refuse one that cannot be meant."""
        texts = tuple(map(text_tag, checked_tags(condition.tags)))
        if condition.key is None and not texts:
            raise UsageError(
                "a condition names a key or tags", hint='as in Condition(key="ada", after=version)'
            )
        if condition.key is None:
            return Check(condition, texts, _after(condition, topic, range(topic.partitions)))
        key, number = self._place(condition.key, topic)
        return Check(condition, (*texts, key_tag(key)), _after(condition, topic, [number]))

    def _place_of(self, row: Row, topic: Topic) -> tuple[bytes, int]:
        """Return the key of a row, and its partition."""
        if not isinstance(row, Mapping):
            raise UsageError(f"a row is a dict, not {row!r:.80}")
        values = tuple(row.get(name) for name in topic.key)
        for name, value in zip(topic.key, values, strict=True):
            if value is None:
                raise RowError(f'key column "{name}" of topic "{topic.name}" is null', column=name)
        return self._place(values if len(values) > 1 else values[0], topic)

    def _place(self, key: Any, topic: Topic) -> tuple[bytes, int]:
        """Return a key's bytes and its partition; of a text, which needs no check, without Arrow."""
        if (
            type(key) is str
            and len(topic.key) == 1
            and pa.types.is_string(topic.schema.field(topic.key[0]).type)
        ):
            found = self._keys.get(key)
            if found is None:
                text = key.encode()
                found = self._keys[key] = (text, keys.partition_of(text, topic.partitions))
                if len(self._keys) > _CACHED_KEYS:
                    self._keys.popitem(last=False)
            return found
        values = key if isinstance(key, tuple) else (key,)
        if len(values) != len(topic.key):
            raise UsageError(
                f'key of topic "{topic.name}" is ({", ".join(topic.key)})', detail=f"got {key!r:.80}"
            )
        fields = [topic.schema.field(name) for name in topic.key]
        columns = [
            fitted(value, field, f'topic "{topic.name}"') for value, field in zip(values, fields, strict=True)
        ]
        text = keys.key_bytes(columns)[0].as_py()
        return text, keys.partition_of(text, topic.partitions)


def check_topic(topic: Topic) -> None:
    """Refuse a topic of which records would go, or that has no key."""
    if not topic.key:
        raise TopicError(
            f'topic "{topic.name}" has no key, so nothing in it has a version',
            hint="make a topic with a key to append under conditions",
        )
    going = [
        ("retention", topic.retention),
        ("retention_bytes", topic.retention_bytes),
        ('cleanup="compact"', topic.compacted or None),
    ]
    for setting, value in going:
        if value is not None:
            raise TopicError(
                f'topic "{topic.name}" takes no appends under conditions: it has {setting}',
                detail="a record that is removed is as one that never came: a request would be taken again",
                hint="make a topic without, and keep its records for ever",
            )


def _of_each(tags: Sequence[str] | Sequence[Sequence[str]], count: int) -> list[tuple[str, ...]]:
    """Return the tags of each row."""
    if isinstance(tags, Sequence) and not isinstance(tags, str) and tags and not isinstance(tags[0], str):
        if len(tags) != count:
            raise UsageError(
                f"{len(tags)} lists of tags for {count} rows", hint="give one list, or one of each row"
            )
        return [checked_tags(each) for each in tags]
    return [checked_tags(tags)] * count  # type: ignore[arg-type]  # of texts


def _after(condition: Condition, topic: Topic, numbers: Sequence[int]) -> dict[int, int]:
    after = condition.after
    if isinstance(after, Position):
        check_position(after, topic)
        return {number: after.offsets.get(number, 0) for number in numbers}
    if isinstance(after, bool) or not isinstance(after, int) or after < 0:
        raise UsageError(f"a version is 0 or more, or a Position, not {after!r:.60}")
    if after and len(numbers) > 1:
        raise UsageError(
            f'tags of topic "{topic.name}", of {topic.partitions} partitions, have no version',
            hint="take `position()` before you read, and give it as after=",
        )
    return dict.fromkeys(numbers, after)


def _converted(group: Sequence[_Asked], topic: Topic) -> tuple[_Converted, list[RowError | None]]:
    """Return those whose rows fit, with their rows, and for each of all its error, if any."""
    headers = _headers(group)
    plain = from_plain_rows([row for each in group for row in each.rows], topic, headers)
    if plain is not None:
        return _Converted(group, plain, headers), [None] * len(group)
    errors = [_error(each, topic) for each in group]
    fitting = [asked for asked, error in zip(group, errors, strict=True) if error is None]
    batch = _batch(fitting, topic) if fitting else None
    return _Converted(fitting, batch, _headers(fitting)), errors


def _headers(group: Sequence[_Asked]) -> pa.Array | None:
    return headers_column([each for asked in group for each in asked.headers])


def _batch(group: Sequence[_Asked], topic: Topic) -> pa.RecordBatch:
    headers = _headers(group)
    extras = {} if headers is None else {"_headers": headers}
    return rows.from_rows([row for each in group for row in each.rows], topic, extras)


def _error(asked: _Asked, topic: Topic) -> RowError | None:
    try:
        _batch([asked], topic)
    except RowError as error:
        return error
    return None
