"""Runs a pipeline: starts its queries, watches over them, and stops them; rebuilds and resets views.

How a query that fails is restarted is in ``headwater.engine.query_restarts``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from headwater.engine.batch import query_layout
from headwater.engine.batch.query import Query
from headwater.engine.home import checkpoint
from headwater.engine.plan.definition import check_unchanged
from headwater.engine.query_restarts import QueryRestarts, failure_of
from headwater.engine.state.rescale import Report
from headwater.errors import HeadwaterError
from headwater.log import Position, Start
from headwater.log.position import start_text
from headwater.pipeline.node import Node
from headwater.pipeline.pipeline import Pipeline

STAGGER_SECONDS = 0.3
MERGE_SECONDS = 10.0
"""How often it is checked whether queries can become one."""
STALL_SECONDS = 60.0
"""How long ``catch_up`` waits for input that is there and is not processed, before it says so."""


class StallTimer:
    """Tells whether a count has stood still for too long."""

    def __init__(self, seconds: float):
        self._seconds, self._count, self._since = seconds, -1, time.monotonic()

    def stalled(self, count: int) -> bool:
        """Take in the count as it is now, and return whether it has stood still too long."""
        if count != self._count:
            self._count, self._since = count, time.monotonic()
        return time.monotonic() - self._since >= self._seconds


class Runner(QueryRestarts):
    """Runs the nodes of a pipeline."""

    def __init__(self, pipeline: Pipeline, **settings: Any):
        super().__init__(pipeline, **settings)
        self._stop = threading.Event()
        self._rebuilding: Query | None = None

    def catch_up(self) -> None:
        """Return when every node has processed all of its input; what fails is raised at the end."""
        self._take_over()
        for query in self._idle():
            self._start(query)
        self._process_until(self._input_ends())
        for query in self.queries.values():  # also those of nodes that were detached meanwhile
            if query.spark is None and query.error is not None:
                raise query.error

    def _process_until(self, ends: dict[str, Position]) -> None:
        """Wait until all queries have passed positions in their inputs, and nothing is left to do."""
        timer = StallTimer(STALL_SECONDS)
        while True:
            before = self._batches_done()
            for query in list(self.queries.values()):
                self._start_detached(query)
            for query in list(self.queries.values()):
                self._process_all(query)
            # What one query derives may be another's input; and Spark may have looked just before.
            behind = [query for query in self.queries.values() if not query.has_passed(ends)]
            detached = any(query.detached for query in self.queries.values())
            if before == self._batches_done() and not behind and not detached:
                return
            if timer.stalled(self._batches_done()):
                raise _stalled(behind)

    def run(self, watch: Callable[[], None], every: float = 0.5) -> None:
        """Run until stopped, or until every query is broken; ``watch`` is called now and then."""
        self._take_over()
        for query in self._idle():
            self._start(query)
            self._stop.wait(STAGGER_SECONDS)  # Python workers that all start at once time out
        merge_at = time.monotonic() + MERGE_SECONDS
        while not self._stop.wait(every):
            if time.monotonic() >= merge_at:
                self.merge_queries()
                merge_at = time.monotonic() + MERGE_SECONDS
            for query in list(self.queries.values()):
                self._restart_failed(query)
            watch()
            if all(query.broken for query in self.queries.values()):
                return

    def rebuild(self, name: str) -> int:
        """Compute a view, or what a sink's target holds, anew beside what readers see, and switch to it."""
        node = self.nodes[name].node_run.node
        with self.versions.alone(node):
            return self._rebuild(node)

    def _rebuild(self, node: Node) -> int:
        name, version = node.name, self.versions.next(node)
        node_run = self._node_run(node, version)
        check_unchanged(version.home, node_run.plan, list(self.pipeline.inputs(node)))
        query = self._rebuilding = self._query(node_run.checkpoint.resolve())
        query.node_runs[name] = node_run
        try:
            self._begin(query, {name: version})
            query.start().processAllAvailable()
        except HeadwaterError:
            raise
        except Exception as error:
            raise failure_of(query, error) from error
        finally:
            query.stop()
        if self._stop.is_set():  # then it has not read everything
            raise HeadwaterError(
                f"the rebuild of {node.title} was stopped", detail="readers see it as before"
            )
        node_run.close()
        self.publisher.publish(self.pipeline.home)
        self.versions.publish(node, version, node_run.schema)
        return version.number

    def reset(self, name: str, to: Start) -> int:
        """Let a view begin anew, empty, from a position in its inputs, in the version that is returned."""
        node = self.nodes[name].node_run.node
        start = {name: self.log.resolve(self._topic(name), to) for name in node.upstreams}
        with self.versions.alone(node):
            version = self.versions.next(node, start_text(to))
            node_run = self._node_run(node, version)
            checkpoint.write_start(node_run.checkpoint, start)
            self._sink(node_run, version).close()  # makes the version
            self.publisher.publish(self.pipeline.home)
            self.versions.publish(node, version, node_run.schema)
        return version.number

    def rescale(self, name: str, count: int, report: Report) -> int:
        """Spread a node's state over another number of buckets; return over how many it was."""
        running = self.nodes[name]
        node_run, topics = running.node_run, list(self.pipeline.inputs(running.node_run.node))
        check_unchanged(running.version.home, node_run.plan, topics)
        self.lease.take()
        return node_run.rescale(count, report)

    def stop(self) -> None:
        """Let ``run`` return, or ``rebuild`` fail without a new version; to be repeated until they have."""
        self._stop.set()
        if self._rebuilding is not None:
            self._rebuilding.stop()

    def _take_over(self) -> None:
        """Begin as the one runner of this pipeline, if its checkpoints are of these nodes."""
        for running in self.nodes.values():
            topics = list(self.pipeline.inputs(running.node_run.node))
            check_unchanged(running.version.home, running.node_run.plan, topics)
        self.lease.take()
        for path, query in self.queries.items():
            for name in query.node_runs:
                query_layout.attach(self.nodes[name].version, path)
        self.merge_queries()
        query_layout.drop_unused(self.pipeline)
        if len(self._idle()) == len(self.queries):  # what runs publishes its own folder, at moments that fit
            self.publisher.publish(self.pipeline.home)

    def _input_ends(self) -> dict[str, Position]:
        """Return where the inputs that something outside writes end now."""
        topics = (*self.pipeline.sources, *self.pipeline.tables)
        return {topic.name: self.inputs.resolve(topic, "latest") for topic in topics}

    def _idle(self) -> list[Query]:
        return [query for query in self.queries.values() if query.spark is None]

    def _batches_done(self) -> int:
        return sum(query.done for query in self.queries.values())


def _stalled(queries: list[Query]) -> HeadwaterError:
    names = ", ".join(f'"{name}"' for query in queries for name in query.node_runs)
    return HeadwaterError(
        f"nothing was processed for {STALL_SECONDS:.0f} seconds, and {names} has input left",
        hint="the pipeline's spark.log may tell why",
    )
