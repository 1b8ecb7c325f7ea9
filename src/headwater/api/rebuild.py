"""A view computed anew, from the beginning or from a place in its inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from headwater.api import session
from headwater.api.background import apart
from headwater.api.subject import SparkOptions, Subject, checked
from headwater.errors import UsageError
from headwater.log import Start
from headwater.pipeline.pipeline import Pipeline
from headwater.values.json_ready import JsonReady

if TYPE_CHECKING:
    from headwater.engine.runner import Runner


@dataclass(frozen=True)
class Rebuilt(JsonReady):
    """A view that has been computed anew or begins anew, and the version that readers see now."""

    view: str
    version: int


def rebuild(
    pipeline: Subject, view: str, *, master: str | None = None, settings: Mapping[str, str] | None = None
) -> Rebuilt:
    """Compute a view anew from the log.

    It is built beside the one that readers see, and takes its place when it has caught up. A pipeline that
    runs meanwhile goes on with the new one. Spark is started for it.
    """
    found = _with_view(pipeline, view)
    where = SparkOptions(master, settings or {})
    return Rebuilt(view, apart(partial(_with_runner, found, where, lambda runner: runner.rebuild(view))))


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
    found = _with_view(pipeline, view)
    where = SparkOptions(master, settings or {})
    return Rebuilt(view, apart(partial(_with_runner, found, where, lambda runner: runner.reset(view, to))))


def check_rebuildable(pipeline: Pipeline, name: str) -> None:
    """Refuse what has no versions: all but views."""
    found = pipeline[name]  # says so if there is none
    if not found.has_versions:
        hint = found.recompute_hint
        raise UsageError(f"{found.title} cannot be built anew", detail="only views have versions", hint=hint)


def _with_view(subject: Subject, name: str) -> Pipeline:
    pipeline = checked(subject)
    check_rebuildable(pipeline, name)
    return pipeline


def _with_runner(pipeline: Pipeline, where: SparkOptions, work: Callable[[Runner], int]) -> int:
    session.create_topics(pipeline)
    spark = session.start(session.log_of(pipeline), where.master, where.settings)
    from headwater.engine.runner import Runner

    with Runner(pipeline, spark=spark) as runner:
        return work(runner)
