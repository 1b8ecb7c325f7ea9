"""Changes that the declared columns cannot hold: they stop the capture, or are set aside, as asked.

What is set aside goes to the topic ``CAPTURE.dead``, with its table, key, position and reason, by a producer
for each table and under the number that the change has in the table's topic. Invariant: none is left out in
silence, and one that is delivered again is set aside once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa

from headwater.capture.change import OPERATIONS, READ, SnapshotChunk, SourceTable, TableChanges
from headwater.capture.writing.topic_writer import UnfitRow
from headwater.closing import Closing
from headwater.errors import RowError
from headwater.log import Log, Producer
from headwater.pipeline.captured import OnMisfit
from headwater.values.json_ready import json_ready

SUFFIX = ".dead"
_SCHEMA = (
    "table STRING, key STRING, operation STRING, position STRING, transaction STRING, index BIGINT,"
    " reason STRING, row STRING"
)
_SNAPSHOT = ".snapshot"
"""In place of a table's topic, for rows that a snapshot has found; no topic has a name that begins so."""


class Misfits(Closing):
    """Takes the changes that do not fit."""

    def __init__(self, log: Log, capture: str, on_error: OnMisfit):
        self._log, self._capture, self._on_error = log, capture, on_error
        self._topic = capture + SUFFIX
        self._producers: dict[str, Producer] = {}

    @property
    def is_kept(self) -> bool:
        """Whether changes are set aside, and do not stop the capture."""
        return self._on_error != "stop"

    def stored(self, topic: str) -> int:
        """Return the number behind the last change of a table that was set aside, by the table's topic."""
        return self._producer(topic).sequence if self._exists() else 0

    def take(self, changes: TableChanges, bad: Sequence[UnfitRow], topic: str) -> None:
        """Set changes of a table with a topic aside, or raise the first."""
        for misfit in bad:  # one by one: they are few, or the declaration is wrong
            number = int(changes.transaction[misfit.row])
            place = {
                "operation": OPERATIONS[changes.operation[misfit.row]],
                "position": changes.transactions.position[number],
                "transaction": changes.transactions.id[number],
                "index": int(changes.index[misfit.row]),
            }
            letter = {**_letter(changes.table, changes.rows, misfit), **place}
            self._take(letter, topic, misfit.number)

    def take_found(self, table: SourceTable, chunk: SnapshotChunk, bad: Sequence[UnfitRow]) -> None:
        """Set rows aside that a snapshot has found, or raise the first; found again, they are there twice."""
        place = {"operation": OPERATIONS[READ], "position": chunk.end, "transaction": None, "index": None}
        for misfit in bad:
            self._take({**_letter(table, chunk.rows, misfit), **place}, _SNAPSHOT, None)

    def flush(self) -> None:
        """Make everything durable."""
        for producer in self._producers.values():
            producer.flush()

    def close(self) -> None:
        """Let go of the topic."""
        for producer in self._producers.values():
            producer.close()

    def _take(self, letter: dict[str, object], by: str, sequence: int | None) -> None:
        if self._on_error == "stop":
            raise RowError(
                f'a row of table "{letter["table"]}" does not fit its topic: key {letter["key"]}',
                detail=f"{letter['reason']}; at {letter['position']}",
                hint='declare a type that holds it, or let on_error be "dead_letter"; a value that is not '
                "sent is there after `headwater capture resnapshot`",
            )
        self._producer(by).send(letter, sequence=sequence)

    def _exists(self) -> bool:
        return self._topic in {topic.name for topic in self._log.topics()}

    def _producer(self, by: str) -> Producer:
        if by not in self._producers:
            if not self._exists():
                self._log.create_topic(self._topic, _SCHEMA)
            self._producers[by] = self._log.producer(self._topic, id=f"capture.{self._capture}.{by}")
        return self._producers[by]


def _letter(table: SourceTable, rows: pa.RecordBatch, misfit: UnfitRow) -> dict[str, object]:
    row = rows.slice(misfit.row, 1).to_pylist()[0]
    return {
        "table": table.name,
        "key": json.dumps([json_ready(row[name]) for name in table.key], default=str),
        "reason": misfit.reason,
        "row": json.dumps(json_ready(row), default=str),
    }
