"""A pipeline at work in a thread of its own, and what the main thread may ask of it meanwhile.

Invariant: figures are only read while the runner is open, and a runner that was opened is closed.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Literal, overload

from headwater.api import session
from headwater.api.background import Background
from headwater.api.captures import BackgroundCapture, workers
from headwater.api.figures.figure_recorder import FigureRecorder
from headwater.api.subject import Subject, checked
from headwater.capture.figures.status import CaptureStatus
from headwater.capture.worker import CaptureWorker
from headwater.closing import Closing
from headwater.engine.figures.input_meter import InputMeter
from headwater.engine.figures.runner_report import InputFigures, RunFigures
from headwater.engine.figures.status import LATE_SHARE, Meter, Status
from headwater.errors import HeadwaterError
from headwater.pipeline.pipeline import Pipeline

if TYPE_CHECKING:
    from headwater.engine.runner import Runner


@dataclass(frozen=True)
class RunOptions:
    """How a pipeline is to be run."""

    until_caught_up: bool = False
    """Whether it ends when all input is processed."""
    master: str | None = None
    """Spark's master; without one ``SPARK_MASTER``, or this machine."""
    settings: Mapping[str, str] | None = None
    """Settings of Spark's own."""
    limit: int | None = None
    """Rows that a batch takes from a topic at most."""
    late_share: float = LATE_SHARE
    """A status has an alert when more than this share of a node's rows come too late."""


@overload
def run(
    pipeline: Subject,
    *,
    until_caught_up: Literal[True],
    master: str | None = ...,
    settings: Mapping[str, str] | None = ...,
    limit: int | None = ...,
    late_share: float = ...,
) -> list[Status]: ...


@overload
def run(
    pipeline: Subject,
    *,
    until_caught_up: Literal[False] = ...,
    master: str | None = ...,
    settings: Mapping[str, str] | None = ...,
    limit: int | None = ...,
    late_share: float = ...,
) -> BackgroundRun: ...


def run(
    pipeline: Subject,
    *,
    until_caught_up: bool = False,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    limit: int | None = None,
    late_share: float = LATE_SHARE,
) -> list[Status] | BackgroundRun:
    """Run a pipeline: all of its input, or until it is stopped.

    With ``until_caught_up`` it returns when every node has processed all of its input, with what each has
    done; what fails is raised. Otherwise it returns at once what goes on in the background, to be used in a
    ``with`` block, whose end stops the nodes, waits for that, and raises why they failed, if they did. A node
    that fails is tried again, later each time; the others go on. Everything goes on where the last run ended.
    """
    options = RunOptions(until_caught_up, master, settings, limit, late_share)
    work = BackgroundRun(checked(pipeline), options)
    if not until_caught_up:
        return work
    with work:
        return work.result()


class BackgroundRun(Closing):
    """Runs a pipeline until it is stopped, has caught up, or is broken."""

    def __init__(self, pipeline: Pipeline, options: RunOptions):
        self._pipeline, self._options = pipeline, options
        self.pipeline = pipeline.name
        self._lock = threading.Lock()
        self._runner: Runner | None = None
        self._meter: Meter | None = None
        self._inputs: InputMeter | None = None
        self._last: list[Status] = []
        self._captures: list[CaptureWorker] = []
        self._stop = threading.Event()
        self._stopping = self._asked = False
        self.step: str | None = "opening the log"
        """What goes on before the nodes run."""
        self._thread = Background(self._run)

    def ended(self, wait: float = 0.0) -> bool:
        """Tell whether it has ended, after some seconds at the most."""
        return self._thread.ended(wait)

    def statuses(self) -> list[Status]:
        """Return how the nodes are doing, or did when it ended; nothing before they run."""
        with self._lock:
            self._read()
            return self._last

    def result(self) -> list[Status]:
        """Wait for the end and return the last statuses, or raise why it failed."""
        self._asked = True
        self._thread.result()
        return self._last

    def stop(self) -> None:
        """Stop every node and wait for that; before they run there is nothing to wait for."""
        self._stopping = True
        self._stop.set()
        runner = self._runner
        if runner is None:
            return
        runner.stop()
        while not self._thread.ended(0.2):
            if self._options.until_caught_up:  # it waits for the queries, which may take long
                _end_queries(runner)

    def close(self) -> None:
        """Stop it and wait for its end; raise why it, or a node for good, has failed, if nobody has asked."""
        self.stop()
        self._wait()
        if self._asked:
            return
        for status in self.result():
            if status.state == "broken" and status.error is not None:
                raise status.error
        for capture in self.captures():
            if capture.state == "broken" and capture.error is not None:
                raise capture.error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it and wait; what the block raised goes before what the run did."""
        if error is None:
            self.close()
            return
        self.stop()
        self._wait()

    def _wait(self) -> None:
        while not self.ended(1.0):
            pass

    def captures(self) -> list[CaptureStatus]:
        """Return how the captures are doing, or did when it ended."""
        return [capture.status() for capture in list(self._captures)]

    def _run(self) -> None:
        with ExitStack() as captures:
            session.create_topics(self._pipeline)
            captures.enter_context(FigureRecorder(self._pipeline.home, self._figures))
            self._capture(captures)
            if not self._stopping:
                self._run_nodes()

    def _run_nodes(self) -> None:
        with self._make() as runner:
            self._inputs = InputMeter(runner)
            self._runner, self._meter, self.step = runner, Meter(runner, self._options.late_share), None
            try:
                if not self._stopping:  # somebody did while Spark started
                    self._process(runner)
            finally:
                with self._lock:
                    self._read()
                    self._meter = self._inputs = None

    def _figures(self) -> RunFigures:
        """Return what is noted for other processes: all that can be read just now."""
        inputs = list[InputFigures]()
        with self._lock, suppress(HeadwaterError):
            self._read()
            if self._inputs is not None:
                inputs = self._inputs.read()
        captures = {each.capture: each.to_dict() for each in self.captures()}
        return RunFigures(self.step, tuple(self._last), tuple(inputs), captures)

    def _read(self) -> None:
        """Read the figures anew; those from before stay where a log cannot be asked just now."""
        if self._meter is not None:
            with suppress(HeadwaterError):
                self._last = self._meter.read()

    def _make(self) -> Runner:
        self.step = "starting Spark"
        spark = session.start(session.log_of(self._pipeline), self._options.master, self._options.settings)
        from headwater.engine.runner import Runner

        self.step = "preparing the nodes"
        return Runner(self._pipeline, spark=spark, limit=self._options.limit)

    def _capture(self, captures: ExitStack) -> None:
        """Begin the captures, which end with the run; or wait until they have caught up."""
        for worker in workers(self._pipeline):
            self._captures.append(worker)
            if self._options.until_caught_up:
                self.step = f"capturing {worker.name}"
                worker.catch_up(self._stop)
            else:
                captures.enter_context(BackgroundCapture(worker))

    def _process(self, runner: Runner) -> None:
        if not self._options.until_caught_up:
            runner.run(lambda: None)
            return
        try:
            runner.catch_up()
        except Exception:  # whatever it is, it is raised unless we have caused it
            if not self._stopping:  # queries that were told to end fail those who wait for them
                raise


def _end_queries(runner: Runner) -> None:
    for query in list(runner.queries.values()):
        query.stop()
