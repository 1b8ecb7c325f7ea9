"""A node's upstreams as DataFrames: as batches between two positions, or without rows.

Invariant: both have the same columns and the same event time.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from headwater import durations, record, topic_errors
from headwater.engine.exchange.frames import frame
from headwater.engine.failure.dead_letters import Skips
from headwater.engine.plan import pruning
from headwater.engine.plan.column_marks import marked
from headwater.engine.plan.empty_stream import EmptyStream, empty_stream
from headwater.engine.plan.pruning import NOTHING, Used
from headwater.engine.source import continuity
from headwater.engine.source.data_source import pieces
from headwater.engine.source.planner_process import PlannerProcess
from headwater.engine.source.records import read
from headwater.errors import TopicError, UnknownTopic, UnreadableRecord
from headwater.log import Log, Position, Topic, prefetched
from headwater.log.position import parse_start
from headwater.log.prefetched import Span
from headwater.pipeline.declaration import IDLE, MAX_AHEAD, Declaration, InputTopic
from headwater.pipeline.node import Node
from headwater.pipeline.pipeline import Pipeline

MOST, LEAST, FOR_WORKERS = 500_000, 20_000, 200_000
"""Rows that a micro-batch takes from one topic: fewer where many nodes share it, so that none waits long for
the others, but so many that workers are worth asking, where there are enough of them."""
FIRST = 50_000
"""Rows of the first micro-batch from a broker: until they are read and decoded nothing else can run."""
CORES = 6
"""With fewer, the driver gets through as many rows as all workers: 1.2 million a second, and 0.24 million on
each core (``bench/nodes.py``)."""


def declare(log: Log, declared: InputTopic) -> Topic:
    """Make the topic of a source or table if it is not there, and check it if it is.

    One that another program has made on a broker is read as it is declared here; nothing of it is changed.
    """
    if declared.topic not in {topic.name for topic in log.topics()}:
        if not declared.declared.plain:
            raise UnknownTopic(
                f'no topic "{declared.topic}", which {declared.title} reads in a format of another program',
                detail=declared.location,
                hint="let that program make it first",
            )
        _create(log, declared.declared)
    log.read_as(declared.declared)
    topic = log.topic(declared.topic)
    _check(declared, topic)
    return topic


def _create(log: Log, declared: Topic) -> None:
    """Make a topic with what it stores: a key or a time that is computed is of those who read it."""
    log.create_topic(
        declared.name,
        declared.schema,
        key=[name for name in declared.key if name not in declared.computed_names],
        event_time=declared.stored_event_time,
        cleanup=declared.cleanup,
    )


class Inputs:
    """The topics that a pipeline's nodes read."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: Pipeline,
        log: Log,
        *,
        limit: int | None = None,
        patient: bool = False,
        gate: Path | None = None,
    ):
        self._spark, self._pipeline, self._log = spark, pipeline, log
        self._limit, self._patient, self._gate = limit, patient, gate
        self._skips: Skips = {}
        for topic in pipeline.input_topics:
            log.read_as(topic.declared)
        kafka = pipeline.log.startswith("kafka:")
        self._prefetch = {"prefetch": str(pipeline.home / "prefetch")} if kafka else {}

    def without(self, skips: Skips) -> Inputs:
        """Return the same inputs, but for some records, given by topic, partition and offset."""
        fewer = copy.copy(self)
        fewer._skips = skips
        return fewer

    def close(self) -> None:
        """Remove what was read ahead by processes that have ended, or are just about to."""
        root, patience = self._prefetch.get("prefetch"), 20
        while root is not None and prefetched.remove_abandoned(Path(root)) and (patience := patience - 1):
            time.sleep(0.05)

    @property
    def cores(self) -> int:
        """How many tasks Spark's workers do at a time."""
        return self._spark.sparkContext.defaultParallelism

    def empty_streams(self, upstreams: Mapping[str, Declaration]) -> dict[str, EmptyStream]:
        """Return upstreams as streams without rows."""
        return {name: self._empty_stream(upstream) for name, upstream in upstreams.items()}

    def _empty_stream(self, upstream: Declaration) -> EmptyStream:
        topic = self._topic(upstream)
        return empty_stream(self._spark, topic.read_schema, topic.event_time, topic.key)

    def start_planner(self) -> PlannerProcess | None:
        """Start a process that plans, where it is worth one: where a broker has to be read for that."""
        return PlannerProcess(self._pipeline.home / "spark.log") if self._prefetch else None

    def plan(self, inputs: Mapping[str, Mapping[str, str]], planner: PlannerProcess | None) -> DataFrame:
        """Return a stream whose micro-batches are planned over inputs, and which is not to be read."""
        source = self._spark.readStream.format("headwater-plan")
        if planner is None:
            return source.option("inputs", json.dumps(inputs)).load()
        return source.option("planner", planner.address).load()

    def planned(
        self,
        upstreams: Mapping[str, Declaration],
        begin: Mapping[str, Position],
        nodes: int,
        until: Mapping[str, Position] | None = None,
    ) -> dict[str, dict[str, str]]:
        """Return the options with which upstreams are planned, by their names."""
        least = LEAST if self.cores < CORES else FOR_WORKERS
        limit = self._limit or max(MOST // max(nodes, 1), least)
        most = {"limit": str(limit)} | ({"first": str(min(limit, FIRST))} if self._prefetch else {})
        ends = {name: {"until": str(at)} for name, at in (until or {}).items()}
        return {
            name: self._streaming(upstreams[name], {**most, **ends.get(name, {}), "start": str(at)})
            for name, at in begin.items()
            if name in upstreams  # else it is declared no longer, and keeps its position
        }

    def _streaming(self, upstream: Declaration, more: Mapping[str, str]) -> dict[str, str]:
        topic = self._topic(upstream)
        options = {**self._options(upstream, topic), **more}
        if self._gate is not None:
            options["gate"] = str(self._gate)
        return options | (timing(upstream, self._patient) if topic.event_time is not None else {})

    def batch(self, upstream: Declaration, start: str, end: Position) -> DataFrame:
        """Return an upstream's rows between two positions."""
        topic = self._topic(upstream)
        options = {**self._options(upstream, topic), "start": start, "end": str(end)}
        rows = self._spark.read.format("headwater").options(**options).load()
        return marked(rows, topic.event_time, topic.key)

    def part(self, upstream: Declaration, start: Position, end: Position, used: Used = NOTHING) -> DataFrame:
        """Return the rows of the partitions that two positions name, between them.

        Columns that are not ``used`` are there and null, so that user code finds the same columns.
        """
        topic = self._topic(upstream)
        options = {**self._options(upstream, topic), "start": str(start), "end": str(end), "only": "true"}
        options |= pruning.columns(topic.read_schema.names, used.get(upstream.name))
        rows = self._spark.read.format("headwater").options(**options).load()
        return marked(
            pruning.widened(rows, from_arrow_schema(topic.read_schema)), topic.event_time, topic.key
        )

    def table(self, upstream: Declaration, start: Position, end: Position) -> pa.Table:
        """Return the same rows, read in this process."""
        schema, batches = self.schema(upstream), list(self._read(start, end))
        return pa.Table.from_batches(batches).cast(schema) if batches else schema.empty_table()

    def table_with_offsets(self, upstream: Declaration, start: Position, end: Position) -> pa.Table:
        """Return the same rows, with the columns that tell where they are: ``_partition`` and ``_offset``."""
        offsets = [pa.field(name, record.META[name]) for name in ("_partition", "_offset")]
        schema = pa.schema([*self.schema(upstream), *offsets])
        batches = [batch.select(schema.names) for batch in self._read(start, end, meta=True)]
        return pa.Table.from_batches(batches).cast(schema) if batches else schema.empty_table()

    def _read(self, start: Position, end: Position, *, meta: bool = False) -> Iterator[pa.RecordBatch]:
        skips = self._skips.get(start.topic, {})
        for partition, last in sorted(end.offsets.items()):
            for first, until in pieces(start.offsets.get(partition, 0), last, skips.get(partition, ())):
                span = Span(end.topic, end.id, partition, first, until)
                yield from read(self._prefetch, span, meta=meta, log=self._log)

    def unreadable(self, start: Position, end: Position) -> Iterator[UnreadableRecord]:
        """Yield the records between two positions that cannot be read."""
        for partition, last in sorted(end.offsets.items()):
            first = start.offsets.get(partition, 0)
            while first < last:
                begin, stop = (Position(end.topic, {partition: at}, end.id) for at in (first, last))
                first = last
                try:
                    for _ in self._read(begin, stop):
                        pass
                except UnreadableRecord as error:
                    yield error
                    first = error.offset + 1

    def options(self, upstream: Declaration) -> dict[str, str]:
        """Return what the data source needs to know to read an upstream."""
        return self._options(upstream, self._topic(upstream))

    def frame(self, upstream: Declaration, rows: pa.Table) -> DataFrame:
        """Return rows of an upstream as a DataFrame."""
        unmarked = frame(self._spark, rows, from_arrow_schema(rows.schema))
        topic = self._topic(upstream)
        return marked(unmarked, topic.event_time, topic.key)

    def skipped(self, upstream: Declaration) -> str:
        """Return which records of an upstream are left out, as text."""
        return json.dumps(self._skips.get(self._topic(upstream).name, {}), sort_keys=True)

    def count_skipped(self, start: Position, end: Position) -> int:
        """Return how many records between two positions are left out."""
        skips = self._skips.get(end.topic, {})
        return sum(
            start.offsets.get(partition, 0) <= offset < last
            for partition, last in end.offsets.items()
            for offset in skips.get(partition, ())
        )

    def empty(self, upstream: Declaration) -> DataFrame:
        """Return a DataFrame with an upstream's columns and no rows."""
        return self.frame(upstream, self.schema(upstream).empty_table())

    def check(self, node: Node, positions: Iterable[Position]) -> None:
        """Refuse to let a node go on from positions that are not in their topics any more."""
        continuity.check(self._log, node, positions)

    def resolve(self, upstream: Declaration, start: str) -> Position:
        """Return the offsets that a start stands for in an upstream."""
        return self._log.resolve(self._topic(upstream).name, parse_start(start))

    def schema(self, upstream: Declaration) -> pa.Schema:
        """Return the columns of an upstream."""
        return pa.schema([pa.field(each.name, each.type) for each in self._topic(upstream).read_schema])

    def _topic(self, upstream: Declaration) -> Topic:
        name = getattr(upstream, "topic", None)
        assert name is not None
        return self._log.topic(name)

    def _options(self, upstream: Declaration, topic: Topic) -> dict[str, str]:
        options = {"url": self._pipeline.log, "topic": topic.name, **self._prefetch}
        if isinstance(upstream, InputTopic) and (self._prefetch or upstream.declared.read_otherwise):
            options["declared"] = json.dumps(upstream.declared.settings())
        if topic.name in self._skips:
            options["skip"] = json.dumps(self._skips[topic.name])
        return options


def timing(upstream: Declaration, patient: bool) -> dict[str, str]:
    """Return how an upstream tells time.

    One who is patient waits for a silent producer, however long that takes, and believes events of any
    time unless the source says otherwise: a test's events need not be from before today.
    """
    declared = upstream.timing
    if declared is None:
        return {"lateness": "marks", "idle": _text(durations.LONGEST)}
    lengths = {
        "lateness": declared.lateness,
        "idle": durations.LONGEST if patient else declared.idle or IDLE,
        "silence": None if patient else declared.idle,
        "max_ahead": declared.max_ahead or (None if patient else MAX_AHEAD),
    }
    return {key: _text(length) for key, length in lengths.items() if length is not None}


def _text(length: timedelta) -> str:
    return str(length // durations.MICROSECOND)


def _check(declared: InputTopic, topic: Topic) -> None:
    """Refuse a declaration that does not describe the topic that is there."""
    for field in declared.declared.schema:
        present = topic.schema.field(field.name) if field.name in topic.schema.names else None
        if present is None or present.type != field.type:
            raise TopicError(
                f'topic "{topic.name}" is not as {declared.title} declares it: column "{field.name}"',
                detail=f"{declared.location}; the topic has {topic.settings()['schema']}",
            )
    asked = declared.declared
    if not asked.plain and (asked.format, asked.key_format) != (topic.format, topic.key_format):
        raise TopicError(
            f'topic "{topic.name}" is adopted in another format than {declared.title} declares',
            detail=f"{declared.location}; {topic_errors.formats_text(topic)}",
        )
    if declared.compacted and not topic.compacted:
        raise TopicError(
            f'topic "{topic.name}" is not compacted, so it is no table', detail=declared.location
        )
    if declared.compacted and set(declared.key) != set(topic.key):
        raise TopicError(
            f'topic "{topic.name}" has the key {", ".join(topic.key)}, not {", ".join(declared.key)}',
            detail=declared.location,
            hint="a deletion tells the topic's key only: declare the table with that",
        )
    if declared.event_time != topic.event_time:
        raise TopicError(
            f'topic "{topic.name}" has the event time {topic.event_time}, not {declared.event_time}',
            detail=declared.location,
        )
