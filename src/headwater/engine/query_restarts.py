"""Starts queries, and restarts those that have failed: after a backoff, or at once without failing nodes.

A node that fails for a reason of its own is detached from its query, and retried by itself; a view that was
rebuilt goes on with its new version.

Invariant: one node's failure stops no other; what a node has committed it never commits again.
"""

from __future__ import annotations

from pathlib import Path

from headwater.engine.assembly import is_shared_failure
from headwater.engine.batch.micro_batch import is_few
from headwater.engine.batch.node_run import NodeRun
from headwater.engine.batch.query import Query
from headwater.engine.batch.worker_start import start_workers
from headwater.engine.failure import failures
from headwater.engine.query_merging import QueryMerging
from headwater.errors import HeadwaterError, InputLost, SinkUnavailable


class QueryRestarts(QueryMerging):
    """A pipeline whose queries are restarted when they fail."""

    _has_workers = False

    def _start(self, query: Query) -> None:
        try:
            self.lease.check()
            query.prepare()
            self._begin(query, self._versions_of(query))
            self._start_workers(query)
            query.start()
        except Exception as error:
            self._handle_failure(query, failure_of(query, error))

    def _start_workers(self, query: Query) -> None:
        """Let workers start beside the first query that has work for them."""
        if not self._has_workers and not is_few(query.lag()):
            self._has_workers = True
            start_workers(self.spark)

    def _process_all(self, query: Query) -> None:
        """Wait until a query has processed its input; one that has failed may be restarted."""
        while query.node_runs and query.spark is not None:
            try:
                query.spark.processAllAvailable()
                return
            except Exception as error:
                if self._handle_failure(query, failure_of(query, error)):
                    self._start(query)

    def _restart_failed(self, query: Query) -> None:
        """Notice a query that has ended, and restart it when its backoff is over."""
        self._start_detached(query)
        if query.spark is not None and not query.spark.isActive:
            self._handle_failure(query, failure_of(query, query.spark.exception()))
        elif query.spark is None and query.retry.is_due:
            self._start(query)

    def _handle_failure(self, query: Query, error: HeadwaterError) -> bool:
        """Let a query that has failed back off, unless the nodes that fail can be taken out; tell whether."""
        query.stop()
        try:
            failing = _failing_nodes(query)
            error = next(iter(failing.values()), error)
            resolved = self._resolve(query, failing)
        except (HeadwaterError, OSError) as problem:  # the log or the disk is away: later, then
            error, resolved = problem if isinstance(problem, HeadwaterError) else error, False
        if not resolved:
            query.back_off(error)
            return False
        query.retry.clear()
        self._start_detached(query)
        if not query.node_runs:
            del self.queries[query.checkpoint]
        return True

    def _resolve(self, query: Query, failing: dict[str, HeadwaterError]) -> bool:
        """Take the nodes that fail out of a query, if that can be done, so that the others go on."""
        remaining = {name: why for name, why in failing.items() if not self._replace_rebuilt(name, why)}
        return bool(failing) and (not remaining or self._isolate(query, remaining))

    def _replace_rebuilt(self, name: str, error: HeadwaterError) -> bool:
        """Let a view that was rebuilt go on with its new version, in another query; tell whether it was."""
        running = self.nodes[name]
        node = running.node_run.node
        if isinstance(error, SinkUnavailable) or not self.versions.replaced(node, running.version):
            return False
        del running.query.node_runs[name]
        self._prepare(node, self.versions.current(node))
        self._start(self.nodes[name].query)
        return True

    def _isolate(self, query: Query, failing: dict[str, HeadwaterError]) -> bool:
        """Let nodes that fail for a reason of their own be retried by themselves; tell whether that helps."""
        everywhere = len(failing) == len(query.node_runs)
        if everywhere or any(_befalls_others(query, name, why) for name, why in failing.items()):
            return False
        for name, why in failing.items():
            path = self._detach(name)
            del query.node_runs[name]
            self._query_of_one(name, path).back_off(why)
        return True

    def _start_detached(self, query: Query) -> None:
        """Start the nodes that were detached from a query while it ran, each by itself."""
        while query.detached:
            self._start(self._query_of_one(*query.detached.pop(0)))

    def _query_of_one(self, name: str, path: Path) -> Query:
        """Return a query for one node, which goes on from a checkpoint."""
        running = self.nodes[name]
        running.query = self.queries[path] = self._query(path)
        running.query.node_runs[name] = running.node_run
        return running.query


def failure_of(query: Query, error: BaseException | None) -> HeadwaterError:
    """Return why a query has ended: what was raised for users, what a node says, or else what Spark does."""
    if isinstance(error, HeadwaterError):
        return error
    node_runs = list(query.node_runs.values())
    reported = next((node_run.error for node_run in node_runs if node_run.error is not None), None)
    return reported or failures.error_from_text(node_runs[0].node, str(error))


def _failing_nodes(query: Query) -> dict[str, HeadwaterError]:
    return {name: why for name, node_run in query.node_runs.items() if (why := _node_error(node_run))}


def _node_error(node_run: NodeRun) -> HeadwaterError | None:
    """Return why a node has failed, or why it cannot go on though it was not asked: planning has failed."""
    if node_run.error is None:
        try:
            node_run.check_inputs()
        except InputLost as error:
            node_run.error = error
    return node_run.error


def _befalls_others(query: Query, name: str, why: HeadwaterError) -> bool:
    """Tell whether what a node fails for befalls the others of its query too, sooner or later."""
    if not is_shared_failure(why):
        return False
    # The results of streams go to the log, those of the views that they run with to a store.
    to_log = _writes_topic(query.node_runs[name])
    elsewhere = any(_writes_topic(node_run) != to_log for node_run in query.node_runs.values())
    return not isinstance(why, SinkUnavailable) or not elsewhere


def _writes_topic(node_run: NodeRun) -> bool:
    return node_run.node.written_topic is not None
