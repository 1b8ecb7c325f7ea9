"""Puts a pipeline together to be run: a member for each node, in a query, with its sinks.

Invariant: nodes that share a query have the order of the pipeline; a sink belongs to one version of a node.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from headwater.closing import Closing
from headwater.engine import sharing
from headwater.engine.checking import check_key
from headwater.engine.dead import DeadLetters
from headwater.engine.inputs import LIMIT, Inputs, declare
from headwater.engine.member import Member
from headwater.engine.ownership import Ownership
from headwater.engine.places import store_of
from headwater.engine.query import Query
from headwater.engine.session import session
from headwater.engine.shape import shape
from headwater.engine.versions import Version, Versions
from headwater.errors import HeadwaterError, PipelineError, UsageError
from headwater.log import Log
from headwater.log.open import open as open_log
from headwater.node import Node
from headwater.pipeline import Pipeline
from headwater.sinks.fitting import DELETED
from headwater.sinks.sink import Sink
from headwater.sinks.targets import Target
from headwater.sinks.topic import TopicSink


@dataclass
class Running:
    """A node, and the query that runs it."""

    member: Member
    version: Version
    query: Query

    @property
    def error(self) -> HeadwaterError | None:
        """Why it does not go on."""
        return self.member.error or self.query.error


class Assembly(Closing):
    """The nodes of a pipeline, ready to run."""

    def __init__(
        self,
        pipeline: Pipeline,
        *,
        spark: SparkSession | None = None,
        limit: int = LIMIT,
        patient: bool = False,
        gate: Path | None = None,
        share: bool = True,
    ):
        pipeline.check()
        if pipeline.log == "memory:":
            raise UsageError(
                "a pipeline cannot run on a log in memory",
                hint="Spark's workers are other processes: use file:",
            )
        self.pipeline = pipeline
        self.log: Log = open_log(pipeline.log)
        for each in (*pipeline.sources, *pipeline.tables):  # before Spark's own file makes the directory
            declare(self.log, each)
        self.spark = spark or session(output=pipeline.home / "spark.log")
        self.inputs = Inputs(self.spark, pipeline, self.log, limit=limit, patient=patient, gate=gate)
        self.store = store_of(pipeline)
        self.versions = Versions(pipeline, self.store)
        self.ownership = Ownership(pipeline.home)
        self._share = share
        self.queries: dict[Path, Query] = {}
        self.nodes: dict[str, Running] = {}
        for node in pipeline.order():
            self._prepare(node, self.versions.current(node))

    def late_topic(self, node: Node) -> str:
        """Return the topic of the rows that came too late for a node."""
        return f"{self.pipeline.name}.{node.name}.late"

    def dead(self, node: Node) -> DeadLetters:
        """Return the records that a node has set aside."""
        return DeadLetters(self.log, self.pipeline.name, node)

    def close(self) -> None:
        """Release everything but Spark."""
        for query in self.queries.values():
            query.stop()
        self.store.close()
        self.log.close()

    def _prepare(self, node: Node, version: Version) -> None:
        """Make a node ready to run, in the query that it shares or in one of its own."""
        member = self._member(node, version)
        path = sharing.place(self.pipeline, member.shape, version, share=self._share)
        query = self.queries.setdefault(path, self._query(path))
        query.members[node.name] = member
        query.members = {each: query.members[each] for each in self._ordered(query)}
        self.nodes[node.name] = Running(member, version, query)

    def _ordered(self, query: Query) -> list[str]:
        return [node.name for node in self.pipeline.order() if node.name in query.members]

    def _member(self, node: Node, version: Version) -> Member:
        upstreams = {name: self.pipeline[name] for name in node.upstreams}
        inputs = self.inputs.without(self.dead(node).skips())
        made = shape(node, upstreams, inputs)
        check_key(node, made.schema)
        member = Member(made, inputs, version.home)
        if node.topic is not None:
            self._declare(node.topic, member)
        return member

    def _query(self, path: Path) -> Query:
        return Query(path, self.inputs)

    def _declare(self, topic: str, member: Member) -> None:
        """Make the derived topic of a stream; one with deletions keeps the newest row of each key."""
        made, deletes = member.shape, DELETED in member.shape.schema.names
        self.log.create_topic(
            topic,
            member.schema,
            key=made.node.key,
            event_time=made.event_time,
            partitions=made.node.partitions or 1,
            cleanup="compact" if deletes else "delete",
        )

    def _topic(self, name: str) -> str:
        return str(getattr(self.pipeline[name], "topic", ""))

    def _begin(self, query: Query, versions: dict[str, Version]) -> None:
        """Open the sinks of a query's members, which shuts out any other runner."""
        upstreams = {name for member in query.members.values() for name in member.upstreams}
        query.begin({name: self.inputs.resolve(self.pipeline[name], "earliest") for name in upstreams})
        for name, member in query.members.items():
            member.error = None
            try:
                sink = self._sink(member, versions[name])
                late = partial(self._late, member.node, versions[name])
                member.begin(sink, late, partial(self._dead_rows, member.node, versions[name]))
            except HeadwaterError as error:
                member.error = error
                raise

    def _sink(self, member: Member, version: Version) -> Sink:
        node = member.node
        if node.topic is not None:
            return TopicSink(self.log, node.topic, f"{self.pipeline.name}.{node.name}")
        if node.kind == "sink":
            return _target(node).open(member.schema)
        sink = self.store.sink(node.name, member.schema, node.key, version=version.number)
        self.store.arrange(node.name, node.order, version=version.number)
        return sink

    def _late(self, node: Node, version: Version, schema: pa.Schema) -> Sink:
        self.ownership.check()  # it begins with its first row: then another runner may have begun
        topic = self.late_topic(node)
        self.log.create_topic(topic, schema)
        return TopicSink(self.log, topic, late_producer(topic, version))

    def _dead_rows(self, node: Node, version: Version) -> Sink:
        self.ownership.check()  # as above
        return self.dead(node).sink(version.number)


def late_producer(topic: str, version: Version) -> str:
    """Return as whom a version writes its late rows: each version numbers its batches anew."""
    return f"{topic}.v{version.number}"


def _target(node: Node) -> Target:
    if not isinstance(node.target, Target):
        raise PipelineError(
            f"{node.title} has no target that can be written to",
            detail=f"got {type(node.target).__name__}",
            hint="use one of headwater.sinks.targets: parquet, postgres, sqlite, foreach",
            place=node.place,
        )
    return node.target
