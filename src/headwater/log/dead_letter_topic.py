"""The topics that a queue's group has to itself: its dead letters, and those that are tried again.

A dead letter is the record as it was, with headers that tell why it died; those that are redriven are
appended to a topic that only this group reads, so that others see nothing of it. Invariant: a topic of
somebody else is never written to, though it has the name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from headwater import durations, record
from headwater import topic as topics
from headwater.errors import TopicError, TopicExists, UnknownTopic
from headwater.log.interface import Log
from headwater.log.queue_report import DeadMessage
from headwater.topic import Topic

ORIGIN = record.ORIGIN
REASON, DELIVERIES, GROUP, DIED = (f"headwater.{name}" for name in ("reason", "deliveries", "group", "died"))
OURS = (REASON, DELIVERIES, ORIGIN, GROUP, DIED)
"""Headers of a dead letter that are not its own: the last ones, in this order.

A record may have such headers of its own, as those of a topic of dead letters have over which there is a
queue: so ours are known by their place, not by their names alone.
"""
HeaderPairs = list[tuple[str, bytes]]


@dataclass(frozen=True)
class Death:
    """Why a message is delivered no more."""

    reason: str
    deliveries: int
    origin: str
    redriven: bool = False
    """Whether the message was dead before, and came from the topic of what is tried again."""


def dead_name(topic: str, group: str) -> str:
    """Return the name of the topic of a group's dead letters.

    >>> dead_name("emails", "mailers")
    'emails.mailers.dead'
    """
    return f"{topic}.{group}.dead"


def retry_name(topic: str, group: str) -> str:
    """Return the name of the topic of what a group tries again."""
    return f"{topic}.{group}.retry"


class DeadLetterTopic:
    """Makes, writes and reads the side topics of one group of a topic."""

    def __init__(self, log: Log, topic: str, group: str):
        self._log, self.topic, self._group = log, topic, group
        self.name, self.retry = dead_name(topic, group), retry_name(topic, group)
        topics.check_name("topic", self.retry)
        self._ours: set[str] = set()
        """Identities of topics that have been found to be this group's."""

    def check(self) -> None:
        """Refuse to go on where a topic of somebody else has one of the names."""
        self.existing(self.name)
        self.existing(self.retry)

    def existing(self, name: str) -> Topic | None:
        """Return a side topic, if it is there; refuse one of somebody else."""
        try:
            found = self._log.topic(name)
        except UnknownTopic:
            return None
        self._check_ours(found)
        return found

    def prepared(self, name: str) -> Topic:
        """Return a side topic with all columns that the queue's topic has now; it is made if need be."""
        origin = self._log.topic(self.topic)
        with suppress(TopicExists):
            if self.existing(name) is None:
                schema = pa.schema([each.with_nullable(True) for each in origin.schema])
                self._log.create_topic(name, schema)
        found = self._log.topic(name)
        if found.schema.names != origin.schema.names:  # columns were added since
            added = [each for each in origin.schema if each.name not in found.schema.names]
            found = self._log.alter_topic(name, schema=pa.schema([*found.schema, *added]))
        return found

    def letters(self, records: pa.Table, deaths: Sequence[Death]) -> pa.Table:
        """Return records, read with their metadata, as they are appended to the topic of dead letters."""
        now = str(durations.now())
        headers = [
            [
                *(_without_origin(every) if death.redriven else every),
                *((name, text.encode()) for name, text in _headers(death, self._who, now).items()),
            ]
            for every, death in zip(_pairs(records), deaths, strict=True)
        ]
        return self._with_headers(records, headers)

    def retries(self, letters: pa.Table) -> pa.Table:
        """Return dead letters as they are appended to be tried again: with where they were, and no more."""
        headers = [
            [*own, (ORIGIN, ours.get(ORIGIN, b""))] for own, ours in map(_taken_apart, _pairs(letters))
        ]
        return self._with_headers(letters, headers)

    def read(self, first: int) -> Iterator[DeadMessage]:
        """Yield dead letters from an offset on; one that was written twice, by a crash, once."""
        if self.existing(self.name) is None:
            return
        seen = set[str]()
        for batch in self._log.read(self.name, 0, first, meta=True):
            columns = self._log.topic(self.name).schema.names
            for row in batch.to_pylist():
                message = _dead_message(row, columns)
                if message.origin not in seen:
                    seen.add(message.origin)
                    yield message

    @property
    def _who(self) -> str:
        return f"{self.topic}/{self._group}"

    def _with_headers(self, records: pa.Table, headers: list[list[tuple[str, bytes]]]) -> pa.Table:
        rows = records.select(self._log.topic(self.topic).schema.names)
        return rows.append_column("_headers", pa.array(headers, record.HEADERS))

    def _check_ours(self, found: Topic) -> None:
        """Refuse a topic whose first record is of somebody else; an empty one is whose it fits."""
        if found.id in self._ours:
            return
        for batch in self._log.read(found.name, meta=True):
            headers = dict(batch.column("_headers")[0].as_py() or ())
            ours = {GROUP, ORIGIN} & headers.keys()
            if not ours or (found.name == self.name and headers.get(GROUP) != self._who.encode()):
                raise self._foreign(found, "with records of somebody else")
            self._ours.add(found.id)
            return
        self._check_fits(found)

    def _check_fits(self, found: Topic) -> None:
        """Refuse an empty topic that cannot take the records of the queue's topic."""
        origin = [each.with_nullable(True) for each in self._log.topic(self.topic).schema]
        if found.key or found.partitions != 1 or list(found.schema) != origin[: len(found.schema)]:
            raise self._foreign(found, "with another declaration than the one that the queue makes")

    def _foreign(self, found: Topic, how: str) -> TopicError:
        return TopicError(
            f'queue of group "{self._group}" over topic "{self.topic}" cannot have topic "{found.name}"',
            detail=f"a topic of that name is there already, {how}",
            hint="name the group otherwise, or delete that topic if nobody needs it",
        )


def _headers(death: Death, who: str, now: str) -> dict[str, str]:
    return dict(zip(OURS, (death.reason, str(death.deliveries), death.origin, who, now), strict=True))


def redriven_headers(headers: Iterable[tuple[str, bytes]]) -> dict[str, bytes]:
    """Return the headers of a message that is tried again, as it had them before: its own origin counts."""
    return dict(reversed(list(headers)))


def _pairs(records: pa.Table) -> list[HeaderPairs]:
    return [list(each or ()) for each in records.column("_headers").to_pylist()]


def _taken_apart(headers: HeaderPairs) -> tuple[HeaderPairs, dict[str, bytes]]:
    """Return the headers of a dead letter: its own, and ours."""
    last = headers[-len(OURS) :]
    if tuple(name for name, _ in last) == OURS:
        return headers[: -len(OURS)], dict(last)
    return [each for each in headers if each[0] not in OURS], dict(headers)


def _without_origin(headers: HeaderPairs) -> HeaderPairs:
    """Return the headers of a record that is tried again without the one that was added then."""
    return headers[:-1] if headers and headers[-1][0] == ORIGIN else headers


def _dead_message(row: Mapping[str, Any], columns: Sequence[str]) -> DeadMessage:
    own, headers = _taken_apart(list(row["_headers"] or ()))
    died = headers.get(DIED, b"")
    return DeadMessage(
        offset=row["_offset"],
        value={name: row[name] for name in columns},
        headers=dict(own),
        reason=headers.get(REASON, b"").decode("utf-8", "replace"),
        deliveries=int(headers.get(DELIVERIES, b"0")),
        origin=headers.get(ORIGIN, b"").decode(),
        died=durations.instant(int(died)) if died.isdigit() else _received(row),
    )


def _received(row: Mapping[str, Any]) -> datetime:
    received: datetime = row["_received"]
    return received
