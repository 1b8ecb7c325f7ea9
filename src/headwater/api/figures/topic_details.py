"""Topics as people look at them: sizes and rates, partitions, who writes them and who reads them.

Invariant: nothing is read but what tells how far things are, a bounded number of records back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from headwater.api.lateness import LatenessReport, lateness, timed_sources
from headwater.errors import HeadwaterError
from headwater.log import Lag, Log, PartitionInfo, Position, TopicInfo
from headwater.pipeline.pipeline import Pipeline
from headwater.schema import type_name
from headwater.values.json_ready import JsonReady, calendar_time

NEWEST = 200_000
"""Records of a topic that are looked at to tell how late they come, at the most."""
RANGES = 5_000
"""Appends of a partition that are looked at to tell who writes it, at the most."""
JUDGED = ("100 milliseconds", "2 seconds", "5 seconds", "30 seconds", "5 minutes", "6 hours")
"""Settings that are counted for a histogram beside the usual ones."""


@dataclass(frozen=True)
class TopicSummary(JsonReady):
    """A topic in a list."""

    info: TopicInfo
    pipelines: tuple[str, ...] = ()
    """Pipelines that read it, or write it."""

    def facts(self) -> dict[str, Any]:
        """Return what a list tells of it."""
        topic = self.info.topic
        return {
            "name": topic.name,
            "partitions": len(self.info.partitions),
            "records": self.info.records,
            "size": self.info.size,
            "rate": round(self.info.rate, 1),
            "key": topic.key,
            "event_time": topic.event_time,
            "compacted": topic.cleanup == "compact",
            "pipeline_of": self.pipelines,
        }


@dataclass(frozen=True)
class TopicProducer(JsonReady):
    """A producer of a partition, as far as its newest appends tell."""

    producer: str
    partition: int
    clock: int | None
    """The newest event time, or mark, that it has sent, in microseconds since 1970."""
    last: int
    """When the log last received something of it."""

    def facts(self) -> dict[str, Any]:
        """Return it with times as such."""
        return {**super().facts(), "clock": calendar_time(self.clock), "last": calendar_time(self.last)}


@dataclass(frozen=True)
class TopicDetails(JsonReady):
    """A topic in full."""

    summary: TopicSummary
    writers: tuple[TopicProducer, ...] = ()
    lags: tuple[Lag, ...] = field(default=())

    def facts(self) -> dict[str, Any]:
        """Return what is told of it in a list, and the rest."""
        info = self.summary.info
        schema = [{"name": each.name, "type": type_name(each)} for each in info.topic.schema]
        return {
            **self.summary.facts(),
            "schema": schema,
            "partitions": [_partition(each) for each in info.partitions],
            "producers": self.writers,
            "groups": [_lag(each) for each in self.lags],
        }


def topic_summaries(log: Log, pipelines: Sequence[Pipeline] = ()) -> list[TopicSummary]:
    """Return every topic of a log with its sizes, and the pipelines that read or write it."""
    return [_summary(log, topic.name, pipelines) for topic in log.topics()]


def topic_details(log: Log, topic: str, pipelines: Sequence[Pipeline] = ()) -> TopicDetails:
    """Return a topic with its partitions, who made its newest appends, and its groups with their lag."""
    summary = _summary(log, topic, pipelines)
    writers = tuple(each for part in summary.info.partitions for each in _writers(log, topic, part))
    return TopicDetails(summary, writers, tuple(_lags(log, topic)))


def recent_lateness(log: Log, topic: str, pipeline: Pipeline | None = None) -> LatenessReport:
    """Return how late the newest rows of a topic came: a bounded number of them.

    The topic is read as ``pipeline`` declares it, if it does: by ``log`` from then on.
    """
    first, last = (log.resolve(topic, end) for end in ("earliest", "latest"))
    each = NEWEST // max(1, len(last.offsets))
    offsets = {number: max(first.offsets.get(number, 0), end - each) for number, end in last.offsets.items()}
    since = Position(topic, offsets, last.id)
    if pipeline is not None and not timed_sources(pipeline, topic):
        pipeline = None
    return lateness(log, topic, since=since, pipeline=pipeline, judged=JUDGED)


def _summary(log: Log, topic: str, pipelines: Sequence[Pipeline]) -> TopicSummary:
    using = tuple(each.name for each in pipelines if topic in _topics(each))
    return TopicSummary(log.describe(topic), using)


def _topics(pipeline: Pipeline) -> set[str]:
    parts = (*pipeline.input_topics, *pipeline.nodes)
    named = {each.readable_topic or each.written_topic or "" for each in parts}
    aside = {f"{pipeline.name}.{node.name}.{what}" for node in pipeline.nodes for what in ("late", "dead")}
    return named | aside


def _writers(log: Log, topic: str, partition: PartitionInfo) -> Iterator[TopicProducer]:
    """Yield who has made the newest appends of a partition; each once."""
    known = dict[str, TopicProducer]()
    start = max(partition.earliest, partition.end - RANGES)
    for each in log.appended_ranges(topic, partition.partition, start):
        before = known.get(each.producer)
        times = [time for time in (each.newest, before.clock if before else None) if time is not None]
        last = max(each.received, before.last if before else each.received)
        known[each.producer] = TopicProducer(
            each.producer, partition.partition, max(times, default=None), last
        )
    yield from known.values()


def _lags(log: Log, topic: str) -> Iterator[Lag]:
    for group in log.groups():
        try:
            yield from (each for each in log.lag(group) if each.topic == topic)
        except HeadwaterError:  # it was deleted meanwhile
            continue


def _partition(info: PartitionInfo) -> dict[str, int | datetime | None]:
    names = ("partition", "earliest", "end", "size", "oldest", "newest")
    return {name: getattr(info, name) for name in names}


def _lag(lag: Lag) -> dict[str, Any]:
    return {name: value for name, value in vars(lag).items() if name != "topic"}
