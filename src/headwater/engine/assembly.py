"""Puts a pipeline together to be run: a `NodeRun` for each node, in a query, with its sinks.

Invariant: nodes that share a query have the order of the pipeline; a sink belongs to one version of a node.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from headwater.engine.batch import query_layout
from headwater.engine.batch.inputs import Inputs, declare
from headwater.engine.batch.node_run import NodeRun
from headwater.engine.batch.query import Query
from headwater.engine.failure.dead_letter_writer import DeadLetterWriter
from headwater.engine.failure.dead_letters import DeadLetters
from headwater.engine.home import side_topics
from headwater.engine.home.lease import Lease
from headwater.engine.home.versions import Rebuilding, Version, producer
from headwater.engine.home.view_locations import store_of
from headwater.engine.inspection import Inspection, Parts, check_runnable
from headwater.engine.node_sinks import SinkContext, open_sink
from headwater.engine.plan.checking import check_stored
from headwater.engine.plan.derived import check_derived_topic
from headwater.engine.plan.event_time_check import check_hears_time
from headwater.engine.spark.session import session
from headwater.engine.stored_home import HomePublisher
from headwater.errors import (
    DiskFull,
    Fenced,
    HeadwaterError,
    LogUnavailable,
    PipelineError,
    SinkRefused,
    SinkUnavailable,
)
from headwater.log.open import open as open_log
from headwater.pipeline.node import Node
from headwater.pipeline.pipeline import Pipeline
from headwater.sinks.sink import Sink
from headwater.sinks.topic import TopicSink
from headwater.topic import Topic
from headwater.views.store import Store

_SHARED_FAILURES = (Fenced, SinkUnavailable, LogUnavailable)
"""What befalls all nodes of a query alike."""
_NODE_FAILURES = (SinkRefused, DiskFull)
"""What may befall one node, though another of the same store goes on: a table that is gone, a large batch."""


def is_shared_failure(error: HeadwaterError | None) -> bool:
    """Tell whether an error of one node befalls the others of its query too."""
    return isinstance(error, _SHARED_FAILURES) and not isinstance(error, _NODE_FAILURES)


@dataclass
class RunningNode:
    """A node, and the query that runs it."""

    node_run: NodeRun
    version: Version
    query: Query

    @property
    def error(self) -> HeadwaterError | None:
        """Why it does not go on."""
        return self.node_run.error or self.query.error


class Assembly(Inspection):
    """The nodes of a pipeline, ready to run."""

    store: Store
    versions: Rebuilding

    def __init__(
        self,
        pipeline: Pipeline,
        *,
        spark: SparkSession | None = None,
        limit: int | None = None,
        patient: bool = False,
        gate: Path | None = None,
        share: bool = True,
    ):
        check_runnable(pipeline)
        with ExitStack() as opened:  # what is open is closed again if the rest fails
            self.publisher = HomePublisher(pipeline)
            opened.callback(self.publisher.close)
            self.publisher.take()
            log = opened.enter_context(open_log(pipeline.log))
            for topic in pipeline.input_topics:  # before Spark's own file makes the directory
                declare(log, topic)
            spark = spark or session(output=pipeline.home / "spark.log")
            inputs = Inputs(spark, pipeline, log, limit=limit, patient=patient, gate=gate)
            store = opened.enter_context(store_of(pipeline))
            super().__init__(pipeline, Parts(log, spark, inputs, store))
            self.versions = Rebuilding(pipeline, store)
            self.lease = Lease(pipeline.home)
            self._share = share
            self.queries: dict[Path, Query] = {}
            self.nodes: dict[str, RunningNode] = {}
            for node in pipeline.order():
                self._prepare(node, self.versions.current(node))
            opened.pop_all()

    def node_run(self, name: str) -> NodeRun:
        """Return a node, as it runs."""
        return self.nodes[name].node_run

    def version(self, name: str) -> Version:
        """Return the version of a node that runs."""
        return self.nodes[name].version

    def close(self) -> None:
        """Release everything but Spark."""
        for query in self.queries.values():
            query.stop()
            for node_run in query.node_runs.values():
                node_run.close()
        self.inputs.close()
        with suppress(HeadwaterError):  # what is not noted is repeated, and changes nothing
            self.publisher.publish(self.pipeline.home)
        self.publisher.close()
        super().close()

    def _prepare(self, node: Node, version: Version) -> None:
        """Make a node ready to run, in the query that it shares or in one of its own."""
        node_run = self._node_run(node, version)
        path = query_layout.assigned_checkpoint(self.pipeline, node_run.plan, version, share=self._share)
        query = self.queries.setdefault(path, self._query(path))
        query.node_runs[node.name] = node_run
        query.node_runs = self._ordered(query.node_runs)
        self.nodes[node.name] = RunningNode(node_run, version, query)

    def _ordered(self, node_runs: Mapping[str, NodeRun]) -> dict[str, NodeRun]:
        """Return nodes in the order of the pipeline."""
        return {node.name: node_runs[node.name] for node in self.pipeline.order() if node.name in node_runs}

    def _versions_of(self, query: Query) -> dict[str, Version]:
        return {name: self.nodes[name].version for name in query.node_runs}

    def _node_run(self, node: Node, version: Version) -> NodeRun:
        node_run = super()._node_run(node, version)
        check_stored(self.pipeline, node, node_run.schema)
        check_hears_time(node_run.plan, self.pipeline)
        topic = check_derived_topic(node_run.plan)
        if topic is not None:
            self._create_topic(topic)
        return node_run

    def _query(self, path: Path) -> Query:
        return Query(path, self.inputs, self._detach, self.publisher.publish)

    def _create_topic(self, topic: Topic) -> None:
        """Make the derived topic of a node."""
        self.log.create_topic(
            topic.name,
            topic.schema,
            key=topic.key,
            event_time=topic.event_time,
            partitions=topic.partitions,
            cleanup=topic.cleanup,
        )

    def _topic(self, name: str) -> str:
        return self.pipeline[name].readable_topic or ""

    def _begin(self, query: Query, versions: dict[str, Version]) -> None:
        """Open the sinks of a query's nodes, which shuts out any other runner."""
        start = {name: self.inputs.resolve(each, "earliest") for name, each in query.upstreams.items()}
        query.begin(start)
        for name, node_run in query.node_runs.items():
            node_run.error = self._begin_node(node_run, versions[name])
            if node_run.error is not None and is_shared_failure(node_run.error):
                raise node_run.error
        for node_run in query.node_runs.values():
            if node_run.error is not None:
                raise node_run.error
        self.publisher.publish(query.checkpoint, *(node_run.home for node_run in query.node_runs.values()))

    def _begin_node(self, node_run: NodeRun, version: Version) -> HeadwaterError | None:
        """Open the sink of a node; what fails there keeps no other from beginning."""
        late = partial(self._late, node_run.node, version)
        try:
            side_topics.check(version.home, self.log, node_run.node)
            self._check_late(node_run)
            letters = self._dead_letter_writer(node_run.node, version)
            node_run.begin(self._sink(node_run, version), late, letters)
        except HeadwaterError as error:
            return error
        return None

    def _sink(self, node_run: NodeRun, version: Version) -> Sink:
        context = SinkContext(self.pipeline.name, self.pipeline.home, self.log, self.store)
        return open_sink(node_run.node, node_run.schema, version.number, context)

    def _late(self, node: Node, version: Version, schema: pa.Schema) -> Sink:
        self.lease.check()  # it begins with its first row: then another runner may have begun
        side_topics.check(version.home, self.log, node)
        topic = self._late_topic(node, schema)
        side_topics.note(version.home, self.log, topic)
        self.publisher.publish(version.home)
        return TopicSink(self.log, topic, producer(topic, version), partitions=1)

    def _check_late(self, node_run: NodeRun) -> None:
        """Refuse to begin where the first row that comes too late would find no topic that fits."""
        if node_run.stage is not None and self._topic_of(self.late_topic(node_run.node)) is not None:
            self._late_topic(node_run.node, node_run.stage.late)

    def _late_topic(self, node: Node, schema: pa.Schema) -> str:
        name = self.late_topic(node)
        topic = self._topic_of(name)
        if topic is None:
            self.log.create_topic(name, schema)
        elif [(each.name, each.type) for each in topic.schema] != [(each.name, each.type) for each in schema]:
            raise PipelineError(
                f"what comes too late for {node.title} has other columns than before",
                detail=f'topic "{name}" has those of before',
                hint=f"copy what it holds, then run `headwater topic delete {name}`: it is made anew",
                location=node.location,
            )
        return name

    def _topic_of(self, name: str) -> Topic | None:
        return next((topic for topic in self.log.topics() if topic.name == name), None)

    def _dead_letter_writer(self, node: Node, version: Version) -> DeadLetterWriter:
        letters = self.dead_letters(node)
        prepare = partial(self._prepare_dead_letters, letters, node, version)
        return DeadLetterWriter(letters, producer(letters.topic, version), prepare)

    def _prepare_dead_letters(self, letters: DeadLetters, node: Node, version: Version) -> None:
        """Make the topic of dead letters of a node, before a row goes there."""
        self.lease.check()  # as above
        side_topics.check(version.home, self.log, node)
        letters.make()
        side_topics.note(version.home, self.log, letters.topic)
        self.publisher.publish(version.home)

    def _detach(self, name: str) -> Path:
        """Give a node a checkpoint of its own."""
        version = self.nodes[name].version
        path = query_layout.detach(version)
        self.publisher.publish(version.home)
        return path
