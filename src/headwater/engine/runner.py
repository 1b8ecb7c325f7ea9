"""Runs a pipeline: nodes share queries, and each is on its own feet when something fails.

Invariant: one node's failure stops no other; what a node has committed it never commits again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from headwater.engine.assembly import OF_ONE, SHARED
from headwater.engine.batch import query_layout
from headwater.engine.batch.node_run import NodeRun
from headwater.engine.batch.query import Query
from headwater.engine.failure import failures
from headwater.engine.gathering import Gathering
from headwater.engine.home import checkpoint
from headwater.engine.plan import definition
from headwater.errors import HeadwaterError, InputLost, SinkUnavailable, is_transient
from headwater.log import Start
from headwater.log.position import start_text
from headwater.pipeline.pipeline import Pipeline

BACKOFF_SECONDS = 1.0
BACKOFF_MOST = 60.0
STAGGER_SECONDS = 0.3
GATHER_SECONDS = 10.0
"""How often it is looked whether queries can become one."""
STILL_SECONDS = 60.0
"""How long ``catch_up`` waits for input that is there and is not processed, before it says so."""


class Patience:
    """Tells for how long it is worth waiting for a count that stands still."""

    def __init__(self, seconds: float):
        self._seconds, self._count, self._since = seconds, -1, time.monotonic()

    def left(self, count: int) -> bool:
        """Take in the count as it is now, and return whether it has not stood still too long."""
        if count != self._count:
            self._count, self._since = count, time.monotonic()
        return time.monotonic() - self._since < self._seconds


class Runner(Gathering):
    """Runs the nodes of a pipeline."""

    def __init__(self, pipeline: Pipeline, **settings: Any):
        super().__init__(pipeline, **settings)
        self._stop = threading.Event()

    # Running

    def catch_up(self) -> None:
        """Return when every node has processed all of its input; what fails is raised at the end."""
        self._take_over()
        for query in self._idle():
            self._start(query)
        there = {name: self.inputs.resolve(self.pipeline[name], "latest") for name in self._outside()}
        patience = Patience(STILL_SECONDS)
        while True:
            before = self._done()
            for query in list(self.queries.values()):
                self._adopt(query)
            for query in list(self.queries.values()):
                self._await(query)
            # What one query derives may be another's input; and Spark may have looked just before.
            behind = [query for query in self.queries.values() if not query.passed(there)]
            left = any(query.left for query in self.queries.values())
            if before == self._done() and not behind and not left:
                break
            if not patience.left(self._done()):
                raise _stands_still(behind)
        for query in self.queries.values():  # also those that parted from others meanwhile
            if query.spark is None and query.error is not None:
                raise query.error

    def run(self, watch: Callable[[], None], every: float = 0.5) -> None:
        """Run until stopped, or until every query is broken; ``watch`` is called now and then."""
        self._take_over()
        for query in self._idle():
            self._start(query)
            self._stop.wait(STAGGER_SECONDS)  # Python workers that all start at once time out
        due = time.monotonic() + GATHER_SECONDS
        while not self._stop.wait(every):
            if time.monotonic() >= due:
                self.gather()
                due = time.monotonic() + GATHER_SECONDS
            for query in list(self.queries.values()):
                self._mind(query)
            watch()
            if all(query.broken for query in self.queries.values()):
                return

    def rebuild(self, name: str) -> int:
        """Compute a view anew from the log, beside the one that readers see, and switch to that version."""
        node = self.nodes[name].node_run.node
        version = self.versions.next(node)
        node_run = self._node_run(node, version)
        definition.check(version.home, node_run.shape, list(self.pipeline.inputs(node)))
        query = self._query(node_run.checkpoint.resolve())
        query.node_runs[name] = node_run
        try:
            self._begin(query, {name: version})
            query.start().processAllAvailable()
        except HeadwaterError:
            raise
        except Exception as error:
            raise _why(query, error) from error
        finally:
            query.stop()
        self.versions.publish(node, version)
        return version.number

    def reset(self, name: str, to: Start) -> int:
        """Let a view begin anew, empty, from a place in its inputs, in the version that is returned."""
        node = self.nodes[name].node_run.node
        places = {each: self.log.resolve(self._topic(each), to) for each in node.upstreams}
        version = self.versions.next(node, start_text(to))
        node_run = self._node_run(node, version)
        checkpoint.begin(node_run.checkpoint, places)
        self._sink(node_run, version).close()  # makes the version
        self.versions.publish(node, version)
        return version.number

    def stop(self) -> None:
        """Let ``run`` return."""
        self._stop.set()

    # Starting

    def _take_over(self) -> None:
        """Begin as the one runner of this pipeline, if its checkpoints are of these nodes."""
        for running in self.nodes.values():
            topics = list(self.pipeline.inputs(running.node_run.node))
            definition.check(running.version.home, running.node_run.shape, topics)
        self.ownership.take()
        for path, query in self.queries.items():
            for name in query.node_runs:
                query_layout.join(self.nodes[name].version, path)
        self.gather()
        query_layout.drop_unused(self.pipeline)

    def _outside(self) -> list[str]:
        return [each.name for each in (*self.pipeline.sources, *self.pipeline.tables)]

    def _idle(self) -> list[Query]:
        return [query for query in list(self.queries.values()) if query.spark is None]

    def _start(self, query: Query) -> None:
        try:
            self.ownership.check()
            self._begin(query, {name: self.nodes[name].version for name in query.node_runs})
            query.start()
        except Exception as error:
            self._failed(query, error if isinstance(error, HeadwaterError) else _why(query, error))

    # Minding

    def _await(self, query: Query) -> None:
        """Wait until a query has processed its input; one that has failed may be started again."""
        while query.node_runs and query.spark is not None:
            try:
                query.spark.processAllAvailable()
                return
            except Exception as error:
                if self._failed(query, _why(query, error)):
                    self._start(query)

    def _mind(self, query: Query) -> None:
        """Notice a query that has ended, and start it again when its time has come."""
        self._adopt(query)
        if query.spark is not None and not query.spark.isActive:
            self._failed(query, _why(query, query.spark.exception()))
        elif query.spark is None and not query.broken and time.monotonic() >= query.again:
            self._start(query)

    def _failed(self, query: Query, error: HeadwaterError) -> bool:
        """Decide how a query that has ended goes on; tell whether what made it fail is out of its way."""
        query.stop()
        try:
            failing = {
                name: why for name, node_run in query.node_runs.items() if (why := _own_error(node_run))
            }
            error = next(iter(failing.values()), error)
            left = {name: why for name, why in failing.items() if not self._mend(name, why)}
            mended = bool(failing) and (not left or self._part(query, left))
        except (HeadwaterError, OSError) as problem:  # the log or the disk is away: later, then
            error, mended = _told(problem, error), False
        if not mended:
            _back_off(query, error)
            return False
        query.again, query.error = 0.0, None
        self._adopt(query)
        if not query.node_runs:
            del self.queries[query.checkpoint]
        return True

    def _mend(self, name: str, error: HeadwaterError) -> bool:
        """Take what made a node fail out of its way, if that can be done."""
        running = self.nodes[name]
        node, query = running.node_run.node, running.query
        if not isinstance(error, SinkUnavailable) and self.versions.replaced(node, running.version):
            del query.node_runs[name]  # it was rebuilt
            self._prepare(node, self.versions.current(node))
            self._start(self.nodes[name].query)
            return True
        return False

    def _part(self, query: Query, failing: dict[str, HeadwaterError]) -> bool:
        """Let nodes that fail for a reason of their own go on by themselves, so that the others can."""
        if len(failing) == len(query.node_runs) or any(map(partial(self._is_shared, query), failing.items())):
            return False
        for name, why in failing.items():
            path = self._leave(name)
            del query.node_runs[name]
            _back_off(self._alone(name, path), why)
        return True

    def _adopt(self, query: Query) -> None:
        """Start the nodes that have left a query while it ran, each by itself."""
        while query.left:
            self._start(self._alone(*query.left.pop(0)))

    def _alone(self, name: str, path: Path) -> Query:
        """Return a query for one node, which goes on from a checkpoint."""
        running = self.nodes[name]
        running.query = self.queries[path] = self._query(path)
        running.query.node_runs[name] = running.node_run
        return running.query

    def _is_shared(self, query: Query, failing: tuple[str, HeadwaterError]) -> bool:
        """Tell whether what a node fails for befalls the others of its query too, sooner or later."""
        name, why = failing
        if not isinstance(why, SHARED) or isinstance(why, OF_ONE):
            return False
        # The results of streams go to the log, those of the views that they run with to a store.
        elsewhere = [
            each for each in query.node_runs.values() if _goes_to(each) != _goes_to(query.node_runs[name])
        ]
        return not isinstance(why, SinkUnavailable) or not elsewhere

    def _done(self) -> int:
        return sum(query.done for query in self.queries.values())


def _own_error(node_run: NodeRun) -> HeadwaterError | None:
    """Return why a node has failed, or why it cannot go on though it was not asked: planning has failed."""
    if node_run.error is None:
        try:
            node_run.check_inputs()
        except InputLost as error:
            node_run.error = error
    return node_run.error


def _goes_to(node_run: NodeRun) -> str:
    return "log" if node_run.node.written_topic is not None else "store"


def _back_off(query: Query, error: HeadwaterError) -> None:
    if query.done > query.batches:
        query.failed = query.faults = 0
    query.failed += 1
    query.faults += not is_transient(error)
    query.batches, query.error = query.done, error
    wait = min(BACKOFF_SECONDS * 2 ** min(query.failed - 1, 16), BACKOFF_MOST)
    query.again = time.monotonic() + wait


def _why(query: Query, error: BaseException | None) -> HeadwaterError:
    """Return why a query has ended: what a node says, or else what Spark does."""
    told = next((node_run.error for node_run in query.node_runs.values() if node_run.error is not None), None)
    return told or failures.error_from_text(next(iter(query.node_runs.values())).node, str(error))


def _stands_still(queries: list[Query]) -> HeadwaterError:
    names = ", ".join(f'"{name}"' for query in queries for name in query.node_runs)
    return HeadwaterError(
        f"nothing was processed for {STILL_SECONDS:.0f} seconds, and {names} has input left",
        hint="the pipeline's spark.log may tell why",
    )


def _told(problem: HeadwaterError | OSError, error: HeadwaterError) -> HeadwaterError:
    """Return why a query could not be mended, or why it has failed if there is no better word."""
    return problem if isinstance(problem, HeadwaterError) else error
