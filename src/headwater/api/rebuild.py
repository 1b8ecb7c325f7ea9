"""A view or a sink's target computed anew, from the beginning, or a view from a place in its inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.api import session
from headwater.api.background import run_in_thread
from headwater.api.subject import SparkOptions, Subject, checked, node_of
from headwater.engine.figures.progress import checkpoint_of, committed_progress, node_lag, topic_lag
from headwater.engine.home.versions import versions_on_disk
from headwater.errors import HeadwaterError, UsageError
from headwater.log import Log, Start
from headwater.pipeline.node import ViewNode
from headwater.pipeline.pipeline import Pipeline
from headwater.values.json_ready import JsonReady

if TYPE_CHECKING:
    from headwater.engine.runner import Runner


@dataclass(frozen=True)
class Rebuilt(JsonReady):
    """A view or sink that has been computed anew or begins anew, and the version that readers see now."""

    view: str
    version: int


def rebuild(
    pipeline: Subject, view: str, *, master: str | None = None, settings: Mapping[str, str] | None = None
) -> Rebuilt:
    """Compute a view, or what the target of a sink holds, anew from the log.

    It is built beside the one that readers see, and takes its place when it has caught up. A pipeline that
    runs meanwhile goes on with the new one. Spark is started for it. An interrupt stops it, and waits for
    that; readers see the view as before.
    """
    found = checked(pipeline)
    check_rebuildable(found, view)
    call = _RunnerCall(found, SparkOptions(master, settings or {}))
    return Rebuilt(view, run_in_thread(lambda: call.run(lambda runner: runner.rebuild(view)), call.stop))


def reset(
    pipeline: Subject,
    view: str,
    to: Start,
    *,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> Rebuilt:
    """Let a view begin anew, empty, from another place in its inputs; what lies before it is left out.

    It fills when the pipeline runs. ``to`` is ``"earliest"``, ``"latest"``, an offset, a time of receipt or a
    position.
    """
    call = _RunnerCall(_with_view(pipeline, view), SparkOptions(master, settings or {}))
    return Rebuilt(view, run_in_thread(lambda: call.run(lambda runner: runner.reset(view, to)), call.stop))


def rebuild_progress(pipeline: Pipeline, node: str, log: Log) -> float | None:
    """Return which part of its input the newest version of a node has processed, from 0 to 1.

    While a node is rebuilt, that is the version which is being built; None where there is no input.
    """
    declared = node_of(pipeline, node, "cannot be built anew")
    version = max(versions_on_disk(pipeline.home, declared), default=None)
    if version is None:
        return None
    path, lag = checkpoint_of(pipeline, declared, version), topic_lag(log)
    topics = pipeline.inputs(declared)
    whole = node_lag(topics, None, lag)
    return 1 - node_lag(topics, committed_progress(path, declared), lag) / whole if whole else None


def check_rebuildable(pipeline: Pipeline, name: str) -> None:
    """Refuse what has no versions: all but views, and sinks whose target has."""
    found = pipeline[name]  # says so if there is none
    if not found.has_versions:
        raise UsageError(
            f"{found.title} cannot be built anew",
            detail="only views have versions, and sinks whose target does",
            hint=found.recompute_hint,
        )


def check_resettable(pipeline: Pipeline, name: str) -> None:
    """Refuse all but views."""
    check_rebuildable(pipeline, name)
    if not isinstance(pipeline[name], ViewNode):
        raise UsageError(f"{pipeline[name].title} cannot be reset", detail="only views can begin anew, empty")


def _with_view(subject: Subject, name: str) -> Pipeline:
    pipeline = checked(subject)
    check_resettable(pipeline, name)
    return pipeline


class _RunnerCall:
    """A call of a runner, which another thread may stop."""

    def __init__(self, pipeline: Pipeline, where: SparkOptions):
        self._pipeline, self._where = pipeline, where
        self._runner: Runner | None = None
        self._begun = self._stopped = False

    def run(self, work: Callable[[Runner], int]) -> int:
        """Start Spark, make a runner, and return what work with it returns."""
        session.create_topics(self._pipeline)
        spark = session.start(session.log_of(self._pipeline), self._where.master, self._where.settings)
        from headwater.engine.runner import Runner

        self._begun = True
        if self._stopped:  # while Spark started; whoever did so waits for nothing
            raise HeadwaterError("it was stopped before it began")
        with Runner(self._pipeline, spark=spark) as self._runner:
            return work(self._runner)

    def stop(self) -> bool:
        """Stop it, and tell whether it has begun, so that its end is to be waited for."""
        self._stopped = True
        if self._runner is not None:
            self._runner.stop()
        return self._begun
