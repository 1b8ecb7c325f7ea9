"""The log as a Spark data source, in streams and in batches, embedded or Kafka alike.

``spark.readStream.format("headwater").option("url", …).option("topic", …)``. A stream's rows have
one column more, ``_clock``: null in every row but one of a micro-batch, which has nothing else and
tells how far time has come (``headwater.engine.clocked`` takes it out again).

Invariant: what a micro-batch reads depends on its offsets alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType, TimestampType

from headwater import clock
from headwater.engine import reading, worker
from headwater.engine.reading import NEVER, Offsets, Timing
from headwater.engine.records import Span, records
from headwater.log import Log, Position
from headwater.log.open import open as open_log
from headwater.log.position import parse_start
from headwater.schema import TIMESTAMP

CLOCK = "_clock"


class HeadwaterSource(DataSource):
    """A topic of a log.

    Options: ``url`` and ``topic``; ``columns`` (names, separated by commas), ``meta``; ``start`` and,
    in a batch, ``end``; in a stream ``lateness`` (or ``marks``, where only they tell the time), ``idle``,
    and, if there are such, ``silence`` and ``max_ahead`` (all in microseconds), ``limit`` (rows of a
    micro-batch), ``gate`` (a file: while it is not there, nothing new is read) and ``retell`` (tell the time
    again when a query starts); ``skip`` (offsets to leave out, by partition, as JSON); ``only`` (of a batch:
    the partitions that ``start`` names); ``log`` (the log's own options, as JSON).
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "headwater"

    def schema(self) -> StructType:
        """Return the topic's columns; the clock is added to a stream that asks for it."""
        with _open(self.options) as log:
            schema = from_arrow_schema(_schema(log, self.options))
        return schema.add(CLOCK, TimestampType()) if "lateness" in self.options else schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return what reads the topic once."""
        return BatchReader(located(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return what reads the topic as it grows."""
        return StreamReader(located(self.options))


class Task(InputPartition):
    """The records that a task reads, and the clock if it is the one to tell it."""

    def __init__(self, span: Span, clock: int | None = None):
        self.span, self.clock = span, clock


class BatchReader(DataSourceReader):
    """Reads a topic from one place to another."""

    def __init__(self, options: Mapping[str, str]):
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """Return a task for each partition of the topic."""
        with _open(self._options) as log:
            topic = self._options["topic"]
            start = parse_start(self._options.get("start", "earliest"))
            first = log.resolve(topic, start)
            last = log.resolve(topic, parse_start(self._options.get("end", "latest"))).offsets
        named = start if "only" in self._options and isinstance(start, Position) else first
        return [
            Task(Span(topic, first.id, number, first.offsets[number], last[number]))
            for number in named.offsets
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of a task."""
        return _read(self._options, partition, clocked=False)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a topic as it grows, and tells the time."""

    def __init__(self, options: Mapping[str, str]):
        self._options = options
        self._topic = options["topic"]
        self._log: Log | None = None
        self._target: Mapping[int, int] | None = None
        self._told_anew = "retell" not in options

    def initialOffset(self) -> dict[str, Any]:
        """Return where a new query begins."""
        start = parse_start(self._options.get("start", "earliest"))
        begin = self._opened().resolve(self._topic, start)
        return self._told(Offsets(begin.offsets), begin.id)

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return how much a micro-batch may read."""
        limit = int(self._options.get("limit", "0"))
        return ReadMaxRows(limit) if limit else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Remember where the topic ends now: nothing behind that is read."""
        self._target = self._opened().resolve(self._topic, "latest").offsets

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Plan the next micro-batch."""
        if "gate" in self._options and not os.path.exists(self._options["gate"]):
            return start
        log, begun = self._opened(), Offsets.from_json(start)
        log.resolve(self._topic, Position(self._topic, begun.offsets, start["id"]))  # or else it is refused
        ends = self._target or log.resolve(self._topic, "latest").offsets
        # A query that runs to a target does not wait for producers to go idle.
        now = NEVER if self._target is not None else clock.now()
        reached = reading.advance(
            begun,
            lambda partition, at: log.stretches(self._topic, partition, at),
            ends,
            limit.max_rows if isinstance(limit, ReadMaxRows) else None,
            now,
            self._timing(),
        )
        return self._told(reached, start["id"], self._starts(start, begun))

    def reportLatestOffset(self) -> dict[str, Any]:
        """Return where the topic ends now."""
        end = self._opened().resolve(self._topic, "latest")
        return self._told(Offsets(end.offsets), end.id)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return a task for each partition that has something new; the first tells the time."""
        first, last = Offsets.from_json(start), Offsets.from_json(end)
        tasks = [
            Task(Span(self._topic, end["id"], number, first.offsets.get(number, 0), reached))
            for number, reached in last.offsets.items()
            if first.offsets.get(number, 0) < reached
        ]
        if last.clock > first.clock or start.get("starts") != end.get("starts"):
            tasks = tasks or [Task(Span(self._topic, end["id"], 0, 0, 0))]
            tasks[0].clock = last.clock
        return tasks

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of a task, and the clock."""
        return _read(self._options, partition, clocked="lateness" in self._options)

    def stop(self) -> None:
        """Release the log."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def _opened(self) -> Log:
        if self._log is None:
            self._log = _open(self._options)
        return self._log

    def _told(self, offsets: Offsets, id: str | None, starts: int = 0) -> dict[str, Any]:
        timing = self._timing()
        told = {"topic": self._topic, "id": id, "timed": timing is not None, **offsets.to_json()}
        if timing is not None:
            told |= {"lateness": timing.lateness or 0, "silence": timing.silence or 0}
        return {**told, "starts": starts} if starts else told

    def _starts(self, start: dict[str, Any], begun: Offsets) -> int:
        """Return how often the time was told anew; where the number grows, there is a micro-batch."""
        before: int = start.get("starts", 0)
        due, self._told_anew = not self._told_anew and begun.clock != NEVER, True
        return before + due

    def _timing(self) -> Timing | None:
        if "lateness" not in self._options:
            return None
        lateness, names = self._options["lateness"], ("silence", "max_ahead")
        given = {name: int(self._options[name]) for name in names if name in self._options}
        idle = int(self._options["idle"])
        return Timing(lateness=None if lateness == "marks" else int(lateness), idle=idle, **given)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_log": None}


def located(options: Mapping[str, str]) -> dict[str, str]:
    """Return options that mean the same in another directory: tasks run anywhere."""
    scheme, _, rest = options["url"].partition(":")
    if scheme != "file":
        return dict(options)
    return {**options, "url": f"file:{Path(rest.removeprefix('//')).absolute()}"}


def _open(options: Mapping[str, str]) -> Log:
    return open_log(options["url"], **json.loads(options.get("log", "{}")))


def _schema(log: Log, options: Mapping[str, str]) -> pa.Schema:
    from headwater.log import record

    topic = log.topic(options["topic"])
    whole = record.read_schema(topic.schema, topic.compacted, options.get("meta") == "true")
    if "columns" not in options:
        return whole
    return pa.schema([whole.field(name) for name in options["columns"].split(",")])


def _read(options: Mapping[str, str], task: Any, *, clocked: bool) -> Iterator[pa.RecordBatch]:
    worker.settle()
    with _open(options) as log:
        schema = _schema(log, options)
        if task.clock is not None:
            yield _tick(schema, task.clock)
        meta, span = options.get("meta") == "true", task.span
        skips = json.loads(options.get("skip", "{}")).get(str(span.partition), ())
        for start, end in pieces(span.start, span.end, skips):
            for batch in records(log, span._replace(start=start, end=end), meta=meta):
                yield _selected(batch, schema, clocked)


def pieces(start: int, end: int, skips: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the offsets from one to another without those that are left out."""
    for offset in sorted(skips):
        if start <= offset < end:
            if start < offset:
                yield start, offset
            start = offset + 1
    if start < end:
        yield start, end


def _selected(batch: pa.RecordBatch, schema: pa.Schema, clocked: bool) -> pa.RecordBatch:
    chosen = batch.select(schema.names)
    chosen = pa.RecordBatch.from_arrays(chosen.columns, schema=_plain(schema))
    return chosen.append_column(CLOCK, pa.nulls(len(batch), TIMESTAMP)) if clocked else chosen


def _plain(schema: pa.Schema) -> pa.Schema:
    """Return a schema without notes of ours, which Spark does not know."""
    return pa.schema([pa.field(f.name, f.type, f.nullable) for f in schema])


def _tick(schema: pa.Schema, time: int) -> pa.RecordBatch:
    columns = [pa.nulls(1, field.type) for field in schema]
    now = pa.array([time // 1000 * 1000], TIMESTAMP)  # Spark's watermark has milliseconds
    return pa.RecordBatch.from_arrays([*columns, now], names=[*schema.names, CLOCK])
