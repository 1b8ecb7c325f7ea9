"""The state of a node spread over another number of buckets."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headwater.api import session
from headwater.api.subject import SparkOptions, Subject, checked, node_of
from headwater.engine.figures.runner_report import read_runner_report
from headwater.errors import UsageError
from headwater.operators.memory.slots import SLOTS
from headwater.pipeline.pipeline import Pipeline
from headwater.values.json_ready import JsonReady

Report = Callable[[int, int], None]
"""Is told how many entries of the state have been moved, and of how many."""


@dataclass(frozen=True)
class Rescaled(JsonReady):
    """A node whose keys are spread over another number of buckets, and over how many they were before."""

    node: str
    before: int
    buckets: int


def rescale(
    pipeline: Subject,
    node: str,
    buckets: int,
    *,
    report: Report = lambda moved, total: None,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> Rescaled:
    """Spread the state of a node over another number of buckets, from 1 to 256, without computing it anew.

    Its results stay what they are. The pipeline must not run meanwhile. All that the node remembers is
    written once more, and counts when all of it is there: a call that is broken off changes nothing. Spark is
    started for it.
    """
    found = checked(pipeline)
    check_rescalable(found, node, buckets)
    where = SparkOptions(master, settings or {})
    spark = session.start(session.log_of(found), where.master, where.settings)
    from headwater.engine.runner import Runner

    with Runner(found, spark=spark) as runner:
        return Rescaled(node, runner.rescale(node, buckets, report), buckets)


def check_rescalable(pipeline: Pipeline, name: str, buckets: int) -> None:
    """Refuse, before Spark is started, what has no buckets, or cannot have so many, or runs."""
    node = node_of(pipeline, name, "has no buckets")
    if not 1 <= buckets <= SLOTS:
        raise UsageError(f"{node.title} cannot have {buckets} buckets", hint=f"a number from 1 to {SLOTS}")
    runner = read_runner_report(pipeline.home)
    if runner is not None and runner.is_running(time.time()):
        raise UsageError(
            f'pipeline "{pipeline.name}" is running',
            detail=f"process {runner.pid} on {runner.host}",
            hint="stop it, rescale, and start it again",
        )
