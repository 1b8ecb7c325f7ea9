"""A pipeline at a glance: all its parts with their figures, whether it runs or not, and what needs attention.

It is made of what the runner has noted and of what the nodes have committed: nothing is started for it.

Invariant: of a node that does not run, what is told is what its last run has left. The rows of a node are
those that were used, late, duplicates and dead, together.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from headwater.api.captures import capture_statuses
from headwater.api.figures.attention import Attention, attention
from headwater.api.lateness import LatenessReport
from headwater.api.subject import Subject, checked
from headwater.capture.figures.status import CaptureStatus
from headwater.engine.figures.progress import Progress, check_has_run, progress
from headwater.engine.figures.runner_report import InputFigures, RunnerReport, read_runner_report
from headwater.engine.figures.status import Status
from headwater.engine.home.accounting import NOTHING, Accounting
from headwater.errors import HeadwaterError
from headwater.log import Log
from headwater.log.open import open as open_log
from headwater.pipeline.declaration import Declaration, InputTopic
from headwater.pipeline.node import Node
from headwater.pipeline.pipeline import Pipeline
from headwater.values.json_ready import JsonReady, calendar_time
from headwater.views import Views

NodeState = Literal["running", "starting", "waiting", "broken", "stopped"]


@dataclass(frozen=True)
class NodeOverview(JsonReady):
    """A source, a table, a stream, a view or a sink, as it is now."""

    name: str
    kind: str
    doc: str
    """What its user says about it."""
    upstreams: tuple[str, ...]
    key: tuple[str, ...]
    topic: str | None
    """The topic that it is, or is written to."""
    state: NodeState
    accounting: Accounting = NOTHING
    """What has become of the rows that it took in, in all runs; of a source, its records."""
    rate: float = 0.0
    """Rows per second, of late; of a source, records."""
    lag: int | None = None
    clock: int | None = None
    """In microseconds since 1970."""
    waits_for: str | None = None
    """The input that holds its clock."""
    batch_seconds: float | None = None
    state_bytes: int | None = None
    memory_bytes: int | None = None
    error: HeadwaterError | None = None
    alert: str | None = None
    view_rows: int | None = None
    """Rows of a view, where they were counted."""

    def facts(self) -> dict[str, Any]:
        """Return its fields, with the accounting among them, and the clock as a time."""
        own = super().facts()
        del own["accounting"]
        return {**own, **self.accounting.facts(), "clock": calendar_time(self.clock)}


@dataclass(frozen=True)
class PipelineOverview(JsonReady):
    """A pipeline as it is now."""

    name: str
    running: bool
    noted: float | None
    """When its runner last noted something, in seconds since 1970; None if none has."""
    started: float | None
    """When that began."""
    step: str | None
    """What its runner does before the nodes run."""
    nodes: tuple[NodeOverview, ...]
    captures: tuple[CaptureStatus, ...] = ()
    attention: tuple[Attention, ...] = ()

    def facts(self) -> dict[str, Any]:
        """Return its fields, with times as such."""
        return {**super().facts(), "noted": _time(self.noted), "started": _time(self.started)}


@dataclass(frozen=True)
class OverviewInputs:
    """What is open already, or was found out before, and so need not be again."""

    log: Log | None = None
    views: Views | None = None
    view_rows: Mapping[str, int] = field(default_factory=dict)
    lateness: Mapping[str, LatenessReport] = field(default_factory=dict)
    """How late rows came, by topic: for the advice that is given where many did."""


@dataclass(frozen=True)
class RunnerInfo(JsonReady):
    """The last runner of a pipeline, as it was last heard of."""

    running: bool
    """Whether it is there now."""
    started: float
    """In seconds since 1970, and so the others."""
    noted: float
    ended: float | None
    """None also of one that was killed."""

    def facts(self) -> dict[str, Any]:
        """Return its fields, with times as such."""
        times = {name: _time(getattr(self, name)) for name in ("started", "noted", "ended")}
        return {**super().facts(), **times}


def runner_of(pipeline: Subject) -> RunnerInfo | None:
    """Return the last runner of a pipeline, in whatever process it is or was; None if it has none noted.

    One that was killed is seen at once on its own machine, and after ten seconds on any other.
    """
    report = read_runner_report(checked(pipeline).home)
    if report is None:
        return None
    return RunnerInfo(report.is_running(time.time()), report.started, report.noted, report.ended)


def overview(pipeline: Subject, known: OverviewInputs | None = None) -> PipelineOverview:
    """Return a pipeline at a glance: its parts with their figures, and what needs attention.

    ``known`` has what the caller has open already; without it the log and the views are opened, and the rows
    of views counted. It may run or not, here or in another process, or never have run.
    """
    found, known = checked(pipeline), known or OverviewInputs()
    if known.log is None:
        with open_log(found.log) as log:
            return _overview(found, log, known)
    return _overview(found, known.log, known)


def _overview(pipeline: Pipeline, log: Log, known: OverviewInputs) -> PipelineOverview:
    report, now = read_runner_report(pipeline.home), time.time()
    running = report is not None and report.is_running(now)
    committed = _committed(pipeline, log, known)
    nodes = _Nodes(pipeline, log, report, running, known, committed)
    captures = tuple(capture_statuses(pipeline))
    parts = tuple(nodes.overview(each) for each in (*pipeline.input_topics, *pipeline.order()))
    return PipelineOverview(
        pipeline.name,
        running,
        report.noted if report is not None else None,
        report.started if report is not None else None,
        report.figures.step if report is not None and running else None,
        parts,
        captures,
        attention(pipeline, log, committed, nodes.live, captures, known.lateness),
    )


def _committed(pipeline: Pipeline, log: Log, known: OverviewInputs) -> Sequence[Progress]:
    try:
        check_has_run(pipeline)
    except HeadwaterError:
        return []
    if known.views is not None:
        return progress(pipeline, log, known.views)
    return progress(pipeline, log)


class _Nodes:
    """The parts of a pipeline, with what is known of each."""

    def __init__(
        self,
        pipeline: Pipeline,
        log: Log,
        report: RunnerReport | None,
        running: bool,
        known: OverviewInputs,
        committed: Sequence[Progress],
    ):
        figures = report.figures if report is not None else None
        self._log, self._running, self._rows = log, running, known.view_rows
        self._starting = running and figures is not None and figures.step is not None
        statuses = {each.node: each for each in (figures.nodes if figures is not None else ())}
        self.noted = statuses
        self.live: Mapping[str, Status] = statuses if running and not self._starting else {}
        self._inputs = {each.name: each for each in figures.inputs} if figures is not None and running else {}
        self._committed = {each.node: each for each in committed}

    def overview(self, declared: Declaration) -> NodeOverview:
        """Return one of them."""
        own = partial(
            NodeOverview,
            declared.name,
            declared.kind,
            declared.description,
            declared.upstreams,
            declared.key,
            declared.readable_topic or declared.written_topic,
            self._state(declared),
        )
        if isinstance(declared, InputTopic):
            figures = self._inputs.get(declared.name) or _asked(self._log, declared)
            return own(Accounting(rows=figures.records), figures.rate, clock=figures.clock)
        assert isinstance(declared, Node)
        return self._node(declared.name, own)

    def _node(self, name: str, own: partial[NodeOverview]) -> NodeOverview:
        live, before, done = self.live.get(name), self.noted.get(name), self._committed.get(name)
        told = live or before
        return own(
            accounting=live.accounting if live is not None else done.accounting if done else NOTHING,
            rate=round(live.rate, 1) if live is not None else 0.0,
            lag=live.lag if live is not None else done.lag if done else None,
            clock=live.clock if live is not None else done.clock if done else None,
            waits_for=done.waits_for[0] if done is not None and done.waits_for is not None else None,
            batch_seconds=round(told.seconds, 3) if told is not None and told.batches else None,
            state_bytes=told.state_bytes if told is not None else None,
            memory_bytes=told.memory_bytes if told is not None else None,
            error=told.error if told is not None else None,
            alert=live.alert if live is not None else None,
            view_rows=self._rows.get(name, done.rows if done is not None else None),
        )

    def _state(self, declared: Declaration) -> NodeState:
        if self._starting:
            return "starting"
        if isinstance(declared, InputTopic):
            return "running" if self._running else "stopped"
        if declared.name in self.live:
            return self.live[declared.name].state
        broken = declared.name in self.noted and self.noted[declared.name].state == "broken"
        return "broken" if broken else "starting" if self._running else "stopped"


def _asked(log: Log, declared: InputTopic) -> InputFigures:
    """Return the figures of an input of which no runner tells, by its topic."""
    try:
        found = log.describe(declared.topic)
    except HeadwaterError:  # it is made when the pipeline runs
        return InputFigures(declared.name, 0, 0.0)
    return InputFigures(declared.name, found.records, round(found.rate, 1))


def _time(seconds: float | None) -> Any:
    return None if seconds is None else calendar_time(int(seconds * 1_000_000))
