"""The log as a Spark data source, in streams and in batches, embedded or Kafka alike.

``spark.readStream.format("headwater").option("url", …).option("topic", …)``. Of a stream that a pipeline
plans, the offsets tell how far time has come, too.

Invariant: what a micro-batch reads depends on its offsets alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from headwater import durations
from headwater.engine.exchange import worker_gc
from headwater.engine.source import offset_plan
from headwater.engine.source.log_options import opened
from headwater.engine.source.records import read
from headwater.engine.source.watermark import NEVER, SourceProgress, Timing
from headwater.errors import UsageError
from headwater.log import Log, Position
from headwater.log.open import absolute_url
from headwater.log.position import parse_start
from headwater.log.prefetched import Span


class HeadwaterSource(DataSource):
    """A topic of a log.

    Options: ``url`` and ``topic``; ``columns`` (names, separated by commas), ``meta``; ``start`` and,
    in a batch, ``end``; in a stream ``lateness`` (or ``marks``, where only they tell the time), ``idle``,
    and, if there are such, ``silence`` and ``max_ahead`` (all in microseconds), ``limit`` (rows of a
    micro-batch; ``first``: of the first one that is planned) and ``gate`` (a file: while it is not there,
    nothing new is read); ``skip`` (offsets to leave out, by partition, as JSON); ``only`` (of a batch: the
    partitions that ``start`` names);
    ``prefetch`` (a folder: where a stream puts what it had to read of a broker to plan, and readers find
    it); ``declared`` (what a topic of another program is read as, as JSON); ``log`` (the log's own options,
    as JSON).
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "headwater"

    def schema(self) -> StructType:
        """Return the topic's columns."""
        with opened(self.options) as log:
            return from_arrow_schema(_schema(log, self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return what reads the topic once."""
        return BatchReader(_located(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return what reads the topic as it grows."""
        return StreamReader(_located(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return what appends a DataFrame to the topic."""
        from headwater.engine.source.writer import BatchWriter

        return BatchWriter(self._written(overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return what appends the micro-batches of a query to the topic."""
        from headwater.engine.source.writer import StreamWriter

        return StreamWriter(self._written(overwrite))

    def _written(self, overwrite: bool) -> dict[str, str]:
        if overwrite:
            raise UsageError(
                f'topic "{self.options["topic"]}" cannot be overwritten: a log is appended to',
                hint='use mode("append"), or outputMode("append") or "update"',
            )
        return _located(self.options)


class Task(InputPartition):
    """The records that a task reads."""

    def __init__(self, span: Span):
        self.span = span


class BatchReader(DataSourceReader):
    """Reads a topic from one place to another."""

    def __init__(self, options: Mapping[str, str]):
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """Return a task for each partition of the topic."""
        with opened(self._options) as log:
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
        return _read(self._options, partition)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a topic as it grows, and tells the time."""

    def __init__(self, options: Mapping[str, str]):
        self._options = options
        self._topic = options["topic"]
        self._log: Log | None = None
        self._target: Mapping[int, int] | None = None
        self._has_planned = False

    def initialOffset(self) -> dict[str, Any]:
        """Return where a new query begins."""
        start = parse_start(self._options.get("start", "earliest"))
        begin = self._opened().resolve(self._topic, start)
        return self._told(SourceProgress(begin.offsets), begin.id)

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return how much a micro-batch may read."""
        limit = int(self._options.get("limit", "0"))
        if not self._has_planned:
            limit = int(self._options.get("first", limit))
        return ReadMaxRows(limit) if limit else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Remember where the topic ends now: nothing behind that is read."""
        self._target = self._opened().resolve(self._topic, "latest").offsets

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Plan the next micro-batch."""
        if "gate" in self._options and not os.path.exists(self._options["gate"]):
            return start
        log, begun = self._opened(), SourceProgress.from_json(start)
        log.resolve(self._topic, Position(self._topic, begun.offsets, start["id"]))  # or else it is refused
        ends = self._target or log.resolve(self._topic, "latest").offsets
        if "until" in self._options:
            until = Position.parse(self._options["until"]).offsets
            ends = {number: min(end, until.get(number, 0)) for number, end in ends.items()}
        begins = {number: begun.offsets.get(number, 0) for number in ends}
        log.read_ahead(Position(self._topic, begins, start["id"]))
        # Where records behind the end are not looked at, nobody is known to be idle.
        ends_early = self._target is not None or "until" in self._options
        now = NEVER if ends_early else durations.now()
        reached = offset_plan.next_offsets(
            begun,
            lambda partition, at: log.appended_ranges(
                self._topic, partition, Position(self._topic, {partition: at}, start["id"])
            ),
            ends,
            limit.max_rows if isinstance(limit, ReadMaxRows) else None,
            now,
            self._timing(),
        )
        self._has_planned = self._has_planned or reached.offsets != begun.offsets
        return self._told(reached, start["id"])

    def read_ahead(self, start: str) -> None:
        """Begin to read from a position on, where the log has to be read to be planned over."""
        self._opened().read_ahead(Position.parse(start))

    def reportLatestOffset(self) -> dict[str, Any]:
        """Return where the topic ends now."""
        end = self._opened().resolve(self._topic, "latest")
        return self._told(SourceProgress(end.offsets), end.id)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return a task for each partition that has something new."""
        first, last = SourceProgress.from_json(start), SourceProgress.from_json(end)
        return [
            Task(Span(self._topic, end["id"], number, first.offsets.get(number, 0), reached))
            for number, reached in last.offsets.items()
            if first.offsets.get(number, 0) < reached
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of a task."""
        return _read(self._options, partition)

    def stop(self) -> None:
        """Release the log."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def _opened(self) -> Log:
        if self._log is None:
            self._log = opened(self._options)
            if "prefetch" in self._options:
                self._log.prefetch_into(Path(self._options["prefetch"]))
        return self._log

    def _told(self, offsets: SourceProgress, id: str | None) -> dict[str, Any]:
        timing = self._timing()
        told = {"topic": self._topic, "id": id, "timed": timing is not None, **offsets.to_json()}
        if timing is not None:
            told |= {"lateness": timing.lateness or 0, "silence": timing.silence or 0}
        return told

    def _timing(self) -> Timing | None:
        if "lateness" not in self._options:
            return None
        lateness, names = self._options["lateness"], ("silence", "max_ahead")
        given = {name: int(self._options[name]) for name in names if name in self._options}
        idle = int(self._options["idle"])
        return Timing(lateness=None if lateness == "marks" else int(lateness), idle=idle, **given)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_log": None}


def _located(options: Mapping[str, str]) -> dict[str, str]:
    """Return options that mean the same in another directory: tasks run anywhere."""
    return {**options, "url": absolute_url(options["url"])}


def _schema(log: Log, options: Mapping[str, str]) -> pa.Schema:
    topic = log.topic(options["topic"])
    whole = topic.meta_schema if options.get("meta") == "true" else topic.read_schema
    if "columns" not in options:
        return whole
    return pa.schema([whole.field(name) for name in options["columns"].split(",")])


def _read(options: Mapping[str, str], task: Any) -> Iterator[pa.RecordBatch]:
    worker_gc.freeze()
    span, meta = task.span, options.get("meta") == "true"
    skips = json.loads(options.get("skip", "{}")).get(str(span.partition), ())
    for start, end in pieces(span.start, span.end, skips):
        for batch in read(options, span._replace(start=start, end=end), meta=meta):
            yield _selected(batch, options.get("columns"))


def pieces(start: int, end: int, skips: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the offsets from one to another without those that are left out."""
    for offset in sorted(skips):
        if start <= offset < end:
            if start < offset:
                yield start, offset
            start = offset + 1
    if start < end:
        yield start, end


def _selected(batch: pa.RecordBatch, columns: str | None) -> pa.RecordBatch:
    chosen = batch if columns is None else batch.select(columns.split(","))
    return pa.RecordBatch.from_arrays(chosen.columns, schema=_plain(chosen.schema))


def _plain(schema: pa.Schema) -> pa.Schema:
    """Return a schema without notes of ours, which Spark does not know."""
    return pa.schema([pa.field(f.name, f.type, f.nullable) for f in schema])
