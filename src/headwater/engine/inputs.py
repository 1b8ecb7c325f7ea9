"""A node's upstreams as DataFrames: as streams, as batches up to a position, or without rows.

Invariant: all three have the same columns and the same event time.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from headwater import clock
from headwater.engine import pruning
from headwater.engine.clocked import clocked, marked
from headwater.engine.dead import Skips
from headwater.engine.pruning import NOTHING, Used
from headwater.errors import TopicError
from headwater.log import Log, Position, Topic, record
from headwater.log.position import parse_start
from headwater.log.topic import Cleanup
from headwater.node import Declaration, Source, Table
from headwater.pipeline import Pipeline

LIMIT = 500_000
"""Rows that a micro-batch takes from one topic at the most."""
IDLE = 10_000_000
_FOREVER = str(clock.LONGEST // clock.MICROSECOND)


def declare(log: Log, each: Declaration) -> Topic:
    """Make the topic of a source or table if it is not there, and check it if it is."""
    assert isinstance(each, Source | Table)
    if each.topic not in {topic.name for topic in log.topics()}:
        settings: dict[str, Any] = {"key": each.key, "event_time": each.event_time}
        cleanup: Cleanup = "compact" if isinstance(each, Table) else "delete"
        return log.create_topic(each.topic, each.schema, cleanup=cleanup, **settings)
    topic = log.topic(each.topic)
    _check(each, topic)
    return topic


class Inputs:
    """The topics that a pipeline's nodes read."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: Pipeline,
        log: Log,
        *,
        limit: int = LIMIT,
        patient: bool = False,
        gate: Path | None = None,
    ):
        self._spark, self._pipeline, self._log = spark, pipeline, log
        self._limit, self._patient, self._gate = limit, patient, gate
        self._skips: Skips = {}

    def without(self, skips: Skips) -> Inputs:
        """Return the same inputs, but for some records, given by topic, partition and offset."""
        fewer = copy.copy(self)
        fewer._skips = skips
        return fewer

    def streams(
        self, upstreams: Mapping[str, Declaration], start: str, used: Used = NOTHING
    ) -> dict[str, DataFrame]:
        """Return the rows of a node's upstreams as they come, from a place on.

        Columns that are not ``used`` are there and null, so that user code finds the same columns.
        """
        # Spark restores the smallest of its inputs' clocks when a query starts again, and forgets the
        # others: an input that has nothing new would hold the clock back there.
        options = {"retell": "true"} if len(upstreams) > 1 else {}
        return {name: self._stream(each, start, options, used) for name, each in upstreams.items()}

    def _stream(self, each: Declaration, start: str, more: Mapping[str, str], used: Used) -> DataFrame:
        topic = self._topic(each)
        options = {**self._options(each, topic), **more, "limit": str(self._limit), "start": start}
        options |= pruning.columns(topic.read_schema.names, used.get(topic.name))
        if self._gate is not None:
            options["gate"] = str(self._gate)
        if topic.event_time is not None:
            options |= _timing(each)
            if self._patient:  # a silent producer is waited for, however long that takes
                options["idle"] = _FOREVER
        rows = self._spark.readStream.format("headwater").options(**options).load()
        whole = pruning.widened(clocked(rows, None), from_arrow_schema(topic.read_schema))
        return marked(whole, topic.event_time)

    def batch(self, each: Declaration, start: str, end: Position) -> DataFrame:
        """Return an upstream's rows between two places."""
        topic = self._topic(each)
        options = {**self._options(each, topic), "start": start, "end": str(end)}
        rows = self._spark.read.format("headwater").options(**options).load()
        return marked(rows, topic.event_time)

    def part(self, each: Declaration, start: Position, end: Position) -> DataFrame:
        """Return the rows of the partitions that two positions name, between them."""
        topic = self._topic(each)
        options = {**self._options(each, topic), "start": str(start), "end": str(end), "only": "true"}
        return marked(self._spark.read.format("headwater").options(**options).load(), topic.event_time)

    def empty(self, each: Declaration) -> DataFrame:
        """Return a DataFrame with an upstream's columns and no rows."""
        topic = self._topic(each)
        schema = from_arrow_schema(record.read_schema(topic.schema, topic.compacted))
        return marked(self._spark.createDataFrame([], schema), topic.event_time)

    def resolve(self, each: Declaration, start: str) -> Position:
        """Return the offsets that a start stands for in an upstream."""
        return self._log.resolve(self._topic(each).name, parse_start(start))

    def _topic(self, each: Declaration) -> Topic:
        name = getattr(each, "topic", None)
        assert name is not None
        return self._log.topic(name)

    def _options(self, each: Declaration, topic: Topic) -> dict[str, str]:
        options = {"url": self._pipeline.log, "topic": topic.name}
        if topic.name in self._skips:
            options["skip"] = json.dumps(self._skips[topic.name])
        return options


def _timing(each: Declaration) -> dict[str, str]:
    if isinstance(each, Source):
        lateness, idle = each.lateness // clock.MICROSECOND, each.idle // clock.MICROSECOND
        return {"lateness": str(lateness), "idle": str(idle)}
    if isinstance(each, Table):
        return {"lateness": "0", "idle": str(IDLE)}
    return {"lateness": "marks", "idle": _FOREVER}


def _check(each: Source | Table, topic: Topic) -> None:
    """Refuse a declaration that does not describe the topic that is there."""
    for field in each.schema:
        there = topic.schema.field(field.name) if field.name in topic.schema.names else None
        if there is None or there.type != field.type:
            raise TopicError(
                f'topic "{topic.name}" is not as {each.title} declares it: column "{field.name}"',
                detail=f"{each.place}; the topic has {topic.settings()['schema']}",
            )
    if isinstance(each, Table) and not topic.compacted:
        raise TopicError(f'topic "{topic.name}" is not compacted, so it is no table', detail=each.place)
    if each.event_time != topic.event_time:
        raise TopicError(
            f'topic "{topic.name}" has the event time {topic.event_time}, not {each.event_time}',
            detail=each.place,
        )
