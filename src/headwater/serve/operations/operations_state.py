"""What those who operate pipelines share in a server: what was found out before, and what is open."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from starlette.requests import Request

from headwater.api.figures.overview import OverviewInputs, PipelineOverview, overview
from headwater.api.figures.topic_details import recent_lateness
from headwater.api.lateness import LatenessReport, timed_sources
from headwater.api.subject import Declaration, Node, node_of, part_of, view_names
from headwater.closing import Closing
from headwater.errors import HeadwaterError, nearest
from headwater.log.open import open as open_log
from headwater.pipeline.pipeline import Pipeline
from headwater.serve.http.problem import HttpProblem
from headwater.serve.http.served import Served, served
from headwater.serve.http.throttled import ThrottledValues
from headwater.serve.operations.jobs import Jobs
from headwater.serve.operations.operation_store import OperationStore

_lock = threading.Lock()


class OperationsState(Closing):
    """What a server knows of its pipelines."""

    def __init__(self, served: Served):
        self.served = served
        self.throttled = ThrottledValues()
        self._jobs: Jobs | None = None
        self._lock = threading.Lock()

    def close(self) -> None:
        """Stop the operations that are under way."""
        with self._lock:
            if self._jobs is not None:
                self._jobs.close()

    @property
    def jobs(self) -> Jobs:
        """The operations: those of before too, in the home of the first pipeline."""
        with self._lock:
            if self._jobs is None:
                first = min(self.served.pipelines, default=None)
                home = None if first is None else self.served.pipelines[first].home
                self._jobs = Jobs(OperationStore(home))
            return self._jobs

    def pipeline(self, name: str) -> Pipeline:
        """Return a pipeline that is served."""
        found = self.served.pipelines.get(name)
        if found is None:
            known = list(self.served.pipelines)
            hint = nearest(name, known) or "pipelines: " + (", ".join(known) or "none")
            raise HttpProblem(404, f'there is no pipeline "{name:.100}"', hint=hint)
        return found

    def part(self, pipeline: str, name: str) -> Declaration:
        """Return a source, table or node of a pipeline that is served."""
        try:
            return part_of(self.pipeline(pipeline), name)
        except HttpProblem:
            raise
        except HeadwaterError as error:
            raise HttpProblem(404, error.message, hint=error.hint) from None

    def node(self, pipeline: str, name: str) -> Node:
        """Return a node of a pipeline that is served."""
        self.part(pipeline, name)
        try:
            return node_of(self.pipeline(pipeline), name, "is no node")
        except HeadwaterError as error:
            raise HttpProblem(409, error.message, hint=error.hint) from None

    def view_rows(self, pipeline: Pipeline) -> dict[str, int]:
        """Return how many rows each view of a pipeline has, as far as that can be told."""
        views, counts = self.served.views.get(pipeline.name), dict[str, int]()
        if views is None:
            return counts
        for name in view_names(pipeline):
            with suppress(HeadwaterError):  # it has never run, or its store is away
                counts[name] = self.served.row_counts.count(pipeline.name, views[name]).rows
        return counts

    def overview(self, pipeline: Pipeline) -> PipelineOverview:
        """Return a pipeline at a glance; those who ask at the same time get the same."""
        return self.throttled.get(("overview", pipeline.name), lambda: self._overview(pipeline))

    def _overview(self, pipeline: Pipeline) -> PipelineOverview:
        views, rows = self.served.views.get(pipeline.name), self.view_rows(pipeline)
        known = OverviewInputs(self.served.log, views, rows)
        found = overview(pipeline, known)
        late = [each.name for each in found.attention if each.severity == "late"]
        if not late:
            return found
        reports = self._lateness_of(pipeline, late)
        return overview(pipeline, replace(known, lateness=reports))

    def lateness(self, topic: str) -> LatenessReport:
        """Return how late the newest rows of a topic came: as often as that is worth it."""
        return self.throttled.get(("lateness", topic), lambda: self._lateness(topic))

    def _lateness(self, topic: str) -> LatenessReport:
        declaring = [each for each in self.served.pipelines.values() if timed_sources(each, topic)]
        if not declaring:
            return recent_lateness(self.served.log, topic)
        with open_log(declaring[0].log) as log:  # which is read as the pipeline declares it
            return recent_lateness(log, topic, declaring[0])

    def _lateness_of(self, pipeline: Pipeline, nodes: Sequence[str]) -> dict[str, LatenessReport]:
        """Return how late rows came, of the sources of nodes; what cannot be told is left out."""
        upstream = {part.name for node in nodes for part in pipeline.upstream(node)}
        reports = dict[str, LatenessReport]()
        for source in pipeline.sources:
            if source.name in upstream and source.event_time is not None:
                with suppress(HeadwaterError):
                    reports[source.topic] = self.lateness(source.topic)
        return reports


def operations_state(request: Request) -> OperationsState:
    """Return what the server of a request knows of its pipelines."""
    state = request.app.state
    with _lock:
        if not hasattr(state, "operations"):
            state.operations = served(request).closers.enter_context(OperationsState(served(request)))
    return state.operations  # type: ignore[no-any-return]
