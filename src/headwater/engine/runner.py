"""Runs a pipeline: one query per node, each on its own feet.

Invariant: one node's failure stops no other; what a node has committed it never commits again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headwater.closing import Closing
from headwater.engine import definition, failures
from headwater.engine.checking import check_key
from headwater.engine.culprits import Poisoned
from headwater.engine.dead import DeadLetters
from headwater.engine.inputs import LIMIT, Inputs, declare
from headwater.engine.ownership import Ownership
from headwater.engine.places import store_of
from headwater.engine.query import Query, shape
from headwater.engine.session import session
from headwater.engine.versions import Version, Versions
from headwater.errors import Fenced, HeadwaterError, PipelineError, SinkUnavailable, UsageError
from headwater.log import Log, Start
from headwater.log.open import open as open_log
from headwater.log.position import place_text
from headwater.node import Node
from headwater.pipeline import Pipeline
from headwater.sinks.fitting import DELETED
from headwater.sinks.sink import Sink
from headwater.sinks.targets import Target
from headwater.sinks.topic import TopicSink

BACKOFF_SECONDS = 1.0
BACKOFF_MOST = 60.0
ATTEMPTS = 6
"""Failures in a row, without a batch in between, after which a node counts as broken."""
STAGGER_SECONDS = 0.3


@dataclass
class Running:
    """A node with its query, as it runs."""

    query: Query
    version: Version
    spark: StreamingQuery | None = None
    failed: int = 0
    batches: int = 0
    """Batches that were done when it failed last."""
    again: float = 0.0
    error: HeadwaterError | None = None
    """Why it stopped last."""

    @property
    def broken(self) -> bool:
        """Whether it is not tried again: a target that cannot be used is waited for, however long."""
        given_up = self.failed >= ATTEMPTS and not isinstance(self.error, SinkUnavailable)
        return self.error is not None and (given_up or isinstance(self.error, Fenced))


class Runner(Closing):
    """The nodes of a pipeline, ready to run."""

    def __init__(
        self,
        pipeline: Pipeline,
        *,
        spark: SparkSession | None = None,
        limit: int = LIMIT,
        patient: bool = False,
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
        self.inputs = Inputs(self.spark, pipeline, self.log, limit=limit, patient=patient)
        self.store = store_of(pipeline)
        self.versions = Versions(pipeline, self.store)
        self._ownership = Ownership(pipeline.home)
        self.nodes: dict[str, Running] = {}
        self._stop = threading.Event()
        for node in pipeline.order():
            self.nodes[node.name] = self._prepared(node, self.versions.current(node))

    def late_topic(self, node: Node) -> str:
        """Return the topic of the rows that came too late for a node."""
        return f"{self.pipeline.name}.{node.name}.late"

    def dead(self, node: Node) -> DeadLetters:
        """Return the records that a node has set aside."""
        return DeadLetters(self.log, self.pipeline.name, node)

    # Running

    def catch_up(self) -> None:
        """Return when every node has processed all of its input; a node that fails is raised."""
        self._take_over()
        for running in self.nodes.values():
            if running.spark is None:
                self._start(running)
        for name in self.nodes:
            self._await(name)

    def run(self, watch: Callable[[], None], every: float = 0.5) -> None:
        """Run until stopped, or until every node is broken; ``watch`` is called now and then."""
        self._take_over()
        for running in self.nodes.values():
            self._start(running)
            self._stop.wait(STAGGER_SECONDS)  # Python workers that all start at once time out
        while not self._stop.wait(every):
            for running in self.nodes.values():
                self._mind(running)
            watch()
            if all(running.broken for running in self.nodes.values()):
                return

    def rebuild(self, name: str) -> None:
        """Compute a view anew from the log, beside the one that readers see, and then switch over."""
        node = self.nodes[name].query.node
        beside = self._prepared(node, self.versions.next(node))
        definition.check(beside.version.home, beside.query.shape, list(self.pipeline.inputs(node)))
        self._start(beside)
        _caught_up(beside)
        assert beside.spark is not None
        beside.spark.stop()
        self.versions.publish(node, beside.version)

    def reset(self, name: str, to: Start) -> None:
        """Let a view begin anew, empty, from a place in its inputs: the rest of them is left out."""
        node = self.nodes[name].query.node
        for topic in self.pipeline.inputs(node):
            self.log.resolve(topic, to)  # says so if there is no such place
        version = self.versions.next(node, place_text(to))
        running = self._prepared(node, version)
        self._sink(running.query, version).close()  # makes the version
        self.versions.publish(node, version)

    def stop(self) -> None:
        """Let ``run`` return."""
        self._stop.set()

    def close(self) -> None:
        """End all queries and release everything but Spark."""
        for running in self.nodes.values():
            if running.spark is not None and running.spark.isActive:
                running.spark.stop()
        self.store.close()
        self.log.close()

    # Inside

    def _take_over(self) -> None:
        """Begin as the one runner of this pipeline, if its checkpoints are of these nodes."""
        for running in self.nodes.values():
            query = running.query
            definition.check(running.version.home, query.shape, list(self.pipeline.inputs(query.node)))
        self._ownership.take()

    def _prepared(self, node: Node, version: Version) -> Running:
        upstreams = {name: self.pipeline[name] for name in node.upstreams}
        inputs = self.inputs.without(self.dead(node).skips())
        made = shape(node, upstreams, inputs, version.start)
        check_key(node, made.schema)
        query = Query(made, upstreams, inputs, version.home)
        if node.topic is not None:
            self._declare(node.topic, query)
        return Running(query, version)

    def _declare(self, topic: str, query: Query) -> None:
        """Make the derived topic of a stream; one with deletions keeps the newest row of each key."""
        made, deletes = query.shape, DELETED in query.shape.schema.names
        self.log.create_topic(
            topic,
            query.schema,
            key=made.node.key,
            event_time=made.event_time,
            partitions=made.node.partitions or 1,
            cleanup="compact" if deletes else "delete",
        )

    def _start(self, running: Running) -> None:
        query = running.query
        try:
            self._ownership.check()
            sink = self._sink(query, running.version)
            running.spark = query.start(sink, partial(self._late, query.node, running.version))
        except HeadwaterError as error:
            self._failed(running, error)

    def _sink(self, query: Query, version: Version) -> Sink:
        node = query.node
        if node.topic is not None:
            return TopicSink(self.log, node.topic, f"{self.pipeline.name}.{node.name}")
        if node.kind == "sink":
            return _target(node).open(query.schema)
        return self.store.sink(node.name, query.schema, node.key, version=version.number)

    def _late(self, node: Node, version: Version, schema: pa.Schema) -> Sink:
        topic = self.late_topic(node)
        self.log.create_topic(topic, schema)
        return TopicSink(self.log, topic, late_producer(topic, version))

    def _await(self, name: str) -> None:
        """Wait until a node has processed its input; records that it sets aside cost it another start."""
        while True:
            running = self.nodes[name]
            try:
                return _caught_up(running)
            except HeadwaterError as error:
                self._failed(running, error)
                if self.nodes[name] is running:
                    raise
                self._start(self.nodes[name])

    def _mind(self, running: Running) -> None:
        """Notice a query that has ended, and start it again when its time has come."""
        if running.spark is not None and not running.spark.isActive:
            error = running.spark.exception()
            running.spark = None
            self._failed(running, running.query.error or failures.told(running.query.node, str(error)))
        elif running.spark is None and not running.broken and time.monotonic() >= running.again:
            self._start(running)

    def _failed(self, running: Running, error: HeadwaterError) -> None:
        node = running.query.node
        if isinstance(error, Poisoned) and node.on_error == "dead_letter":
            self.dead(node).bury(error.culprits)
            self.nodes[node.name] = self._prepared(node, running.version)  # which leaves them out
            return
        asked = self.nodes[node.name] is running and not isinstance(error, SinkUnavailable)
        if asked and self.versions.replaced(node, running.version):
            self.nodes[node.name] = self._prepared(node, self.versions.current(node))  # it was rebuilt
            return
        done = running.query.counts.batches
        running.failed = 1 if done > running.batches else running.failed + 1
        running.batches, running.error = done, error
        wait = min(BACKOFF_SECONDS * 2 ** min(running.failed - 1, 16), BACKOFF_MOST)
        running.again = time.monotonic() + wait


def _caught_up(running: Running) -> None:
    if running.spark is None:
        assert running.error is not None
        raise running.error
    try:
        running.spark.processAllAvailable()
    except Exception as error:
        raise running.query.error or failures.told(running.query.node, str(error)) from error


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
