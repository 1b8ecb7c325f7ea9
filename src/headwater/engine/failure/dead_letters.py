"""Records that a node has set aside because its code fails on them: the node's dead-letter topic.

A record is set aside once, by its place, and is left out of everything that the node reads from
then on, also when it is computed again. Invariant: what is left out is in the topic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater import schema as schemas
from headwater.engine.failure.rejected_row import RecordOffset, RejectedRow
from headwater.errors import HeadwaterError, UnknownTopic
from headwater.log import Log, Position, Topic
from headwater.pipeline.node import Node
from headwater.record import DELETED
from headwater.sinks.sink import Sink
from headwater.sinks.topic import TopicSink
from headwater.values import jsonl

_META = ["_offset", DELETED, "_occurred"]
Skips = dict[str, dict[int, list[int]]]
"""Offsets that are left out, by topic and partition."""
SCHEMA = (
    "topic STRING, partition INT, offset BIGINT, error STRING, record STRING, at TIMESTAMP, "
    "deleted BOOLEAN, occurred TIMESTAMP, "  # whether the record deletes its key, and since when
    "topic_id STRING"  # another topic of the same name has other records at these places
)


def letters(rows: Sequence[RejectedRow]) -> pa.Table:
    """Return rows that have no source as they are stored."""
    now = datetime.now(UTC)
    stored = [{"error": row.error, "record": row.record, "at": now} for row in rows]
    return pa.Table.from_pylist(stored, schema=schemas.parse(SCHEMA))


@dataclass(frozen=True)
class LastLetter:
    """How many records are set aside, and why the last one is."""

    count: int
    error: str
    at: datetime


class DeadLetters:
    """The records that one node has set aside."""

    def __init__(self, log: Log, pipeline: str, node: Node):
        self._log = log
        self.topic = f"{pipeline}.{node.name}.dead"

    def skips(self) -> Skips:
        """Return the offsets that the node leaves out, by topic and partition."""
        found: Skips = {}
        for row in self._records_present():
            found.setdefault(row["topic"], {}).setdefault(row["partition"], []).append(row["offset"])
        return found

    def add(self, records: Sequence[RejectedRow]) -> None:
        """Add records with their errors, durably; those that are there already are left as they are."""
        self.make()
        present = {(row["topic"], row["partition"], row["offset"]) for row in self._records_present()}
        new = {row.source: row for row in records if row.source is not None and row.source not in present}
        with self._log.producer(self.topic, id=self.topic) as producer:
            producer.send_batch(self._letters(new))

    def sink(self, producer: str) -> Sink:
        """Return where a version of the node, as a producer, sets rows aside that its operator failed on."""
        self.make()
        return TopicSink(self._log, self.topic, producer, partitions=1)

    def redrive(self) -> int:
        """Append every record that can be read again to the topic it came from; return how many.

        It is a new record there, which every reader of the topic meets. Each is appended once,
        however often this is called.
        """
        known = ((row["_offset"], row) for row in self.rows(meta=True))
        found = [(number, row) for number, row in known if row["topic"] and row["record"] is not None]
        done = 0
        for name in sorted({row["topic"] for _, row in found}):
            done += self._append_again(name, [each for each in found if each[1]["topic"] == name])
        return done

    def _append_again(self, name: str, letters: Sequence[tuple[int, dict[str, Any]]]) -> int:
        topic, before = self._log.topic(name), self._log.resolve(name, "latest")
        own = self._log.topic(self.topic).id  # letters of a topic of this name that was deleted were others
        with self._log.producer(name, id=f"{self.topic}.redrive.{own}") as producer:
            for number, letter in letters:
                if letter["deleted"]:
                    key = _decoded(letter, _only_key(topic)).to_pylist()[0]
                    producer.delete(key, occurred=letter["occurred"], sequence=number)
                elif (batch := _decoded(letter, topic)).num_rows:
                    producer.send_batch(batch, sequence=number)
        after = self._log.resolve(name, "latest")
        return sum(after.offsets.values()) - sum(before.offsets.values())

    def make(self) -> None:
        """Make the topic, when it is first needed."""
        if self.topic not in {topic.name for topic in self._log.topics()}:
            self._log.create_topic(self.topic, SCHEMA)

    def _records_present(self) -> list[dict[str, Any]]:
        """Return the records with a place in a topic that is there: no rows that an operator failed on."""
        ids = {topic.name: topic.id for topic in self._log.topics()}
        return [row for row in self.rows() if row["topic"] and row["topic_id"] == ids.get(row["topic"])]

    def rows(self, *, meta: bool = False) -> list[dict[str, Any]]:
        """Return what was set aside, oldest first; with its place in the topic of letters, if asked."""
        if self.topic not in {topic.name for topic in self._log.topics()}:
            return []
        return [row for batch in self._log.read(self.topic, meta=meta) for row in batch.to_pylist()]

    def end(self) -> Position | None:
        """Return where the topic ends; None if nothing was ever set aside."""
        try:
            return self._log.resolve(self.topic, "latest")
        except UnknownTopic:
            return None

    def last(self, since: Position | None = None) -> LastLetter | None:
        """Return how many there are since a position, and the newest, without reading the others."""
        end = self.end()
        if end is None:
            return None
        first = self._log.resolve(self.topic, "earliest").offsets[0]
        if since is not None and since.id == end.id:  # not of a topic that was deleted and made again
            first = max(first, since.offsets[0])
        for batch in self._log.read(self.topic, 0, max(first, end.offsets[0] - 1)):
            for row in batch.to_pylist():
                return LastLetter(end.offsets[0] - first, row["error"], row["at"])
        return None

    def _letters(self, rejected: Mapping[RecordOffset, RejectedRow]) -> list[dict[str, object]]:
        """Return records as they are stored: those of a partition that can be read are read at once."""
        by_partition: dict[tuple[str, int], list[int]] = {}
        for topic, partition, offset in (place for place, row in rejected.items() if row.record is None):
            by_partition.setdefault((topic, partition), []).append(offset)
        read = {key: self._read(*key, offsets) for key, offsets in by_partition.items()}
        now, ids = datetime.now(UTC), {each.topic: self._log.topic(each.topic).id for each in rejected}
        return [
            {**source._asdict(), "error": row.error, "at": now, "topic_id": ids[source.topic]}
            | {"record": row.record}
            | read.get((source.topic, source.partition), {}).get(source.offset, {})
            for source, row in rejected.items()
        ]

    def _read(self, name: str, partition: int, offsets: list[int]) -> dict[int, dict[str, object]]:
        """Return records by their offsets, as JSON, and whether they are deletions; not what is gone."""
        start, end = (Position(name, {partition: at}) for at in (min(offsets), max(offsets) + 1))
        topic, records = self._log.topic(name), dict[int, dict[str, object]]()
        with suppress(HeadwaterError):
            for batch in self._log.read(name, partition, start, end, meta=True):
                wanted = batch.filter(pc.is_in(batch["_offset"], pa.array(offsets, pa.int64())))
                texts = jsonl.encode(wanted.select(topic.schema.names), topic)
                for row, text in zip(wanted.select(_META).to_pylist(), texts, strict=True):
                    deletion = {"deleted": row[DELETED], "occurred": row["_occurred"]}
                    records[row["_offset"]] = {"record": text.decode(), **deletion}
        return records


def _decoded(letter: dict[str, Any], topic: Topic) -> pa.RecordBatch:
    """Return the record of a letter; none if it does not fit its topic."""
    batch, _ = jsonl.decode([letter["record"].encode()], topic)
    return batch


def _only_key(topic: Topic) -> Topic:
    """Return a topic without the columns that a deletion does not have."""
    return replace(topic, schemas=(pa.schema([topic.columns.field(name) for name in topic.key]),))
