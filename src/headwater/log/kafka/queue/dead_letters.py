"""Dead letters of a queue on Kafka, and those that are tried again.

How far dead letters were redriven or purged is what a consumer group of theirs has committed. Invariant: what
is redriven is appended under the offset of its dead letter, so that a crash in between appends it once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from headwater.log.dead_letter_topic import DeadLetterTopic, Death
from headwater.log.interface import Log
from headwater.log.position import Position
from headwater.log.producer import Producer
from headwater.log.queue_report import DeadMessage
from headwater.topic import Topic


class ShareGroupDeadLetters:
    """Writes dead letters of one queue, and brings them back."""

    def __init__(self, log: Log, topic: str, group: str, before_retry: Callable[[], None]):
        self._log, self._side, self._before_retry = log, DeadLetterTopic(log, topic, group), before_retry
        self._group = f"{topic}.{group}.dead"
        self._producer: Producer | None = None
        self._side.check()

    @property
    def retry(self) -> str:
        """The topic of what is tried again."""
        return self._side.retry

    def move_to_dead_letters(self, record: pa.RecordBatch, death: Death) -> None:
        """Write a dead letter, durably."""
        self._side.prepared(self._side.name)
        if self._producer is None:
            self._producer = self._log.producer(self._side.name)
        self._producer.append_changes([self._side.letters(pa.Table.from_batches([record]), [death])])

    def letters(self) -> Iterator[DeadMessage]:
        """Yield the dead letters that were neither redriven nor purged."""
        dead = self._side.existing(self._side.name)
        if dead is not None:
            yield from self._side.read(self._first(dead))

    def redrive(self) -> int:
        """Append all dead letters to what is tried again; return how many."""
        dead = self._side.existing(self._side.name)
        wanted = {each.offset for each in self.letters()}
        if dead is None or not wanted:
            return 0
        end = self._log.resolve(dead.name, "latest").offsets[0]
        self._before_retry()
        self._side.prepared(self._side.retry)
        with self._log.producer(self._side.retry, id=f"redrive-{dead.id}") as producer:
            for batch in self._log.read(dead.name, 0, min(wanted), end, meta=True):
                self._append(producer, batch, wanted)
        self._pass_over(dead, end)
        return len(wanted)

    def purge(self) -> int:
        """Forget all dead letters; return how many."""
        dead, count = self._side.existing(self._side.name), sum(1 for _ in self.letters())
        if dead is not None:
            self._pass_over(dead, self._log.resolve(dead.name, "latest").offsets[0])
        return count

    def close(self) -> None:
        """Release the producer."""
        if self._producer is not None:
            self._producer.close()
            self._producer = None

    def _append(self, producer: Producer, batch: pa.RecordBatch, wanted: set[int]) -> None:
        for row, offset in enumerate(batch.column("_offset").to_pylist()):
            if offset in wanted:  # else it is there twice
                letter = pa.Table.from_batches([batch.slice(row, 1)])
                producer.send_changes(self._side.retries(letter), sequence=offset)

    def _first(self, dead: Topic) -> int:
        if self._group not in self._log.groups():
            return 0
        there = [each for each in self._log.lag(self._group) if each.topic == dead.name]
        return max((each.committed for each in there), default=0)

    def _pass_over(self, dead: Topic, end: int) -> None:
        self._log.seek(self._group, dead.name, Position(dead.name, {0: end}, dead.id))
