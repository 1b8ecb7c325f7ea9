"""How far the nodes of a pipeline have got, whether it runs or not: nothing is started to know it."""

from __future__ import annotations

import time
from dataclasses import replace

from headwater.api.subject import Subject, checked
from headwater.engine.figures.progress import Progress, check_has_run, progress
from headwater.engine.figures.runner_report import read_runner_report
from headwater.engine.figures.status import Status
from headwater.log.open import open as open_log
from headwater.pipeline.pipeline import Pipeline


def status(pipeline: Subject) -> list[Progress]:
    """Return how far each node of a pipeline has got, as the nodes have written it down.

    The last batch and when it ended, the records that it is behind, its clock, the rows of a view, and up to
    where its inputs are read. It says nothing about whether the pipeline runs. One that has never run is
    refused with a ``HeadwaterError``.
    """
    found = checked(pipeline)
    check_has_run(found)
    with open_log(found.log) as log:
        return _with_last_run(found, progress(found, log))


def _with_last_run(pipeline: Pipeline, nodes: list[Progress]) -> list[Progress]:
    """Add what the last runner has noted of what nodes hold in memory, and of their keys."""
    report = read_runner_report(pipeline.home)
    if report is None:
        return nodes
    noted, running = {each.node: each for each in report.figures.nodes}, report.is_running(time.time())
    return [_with_status(node, noted[node.node], running) if node.node in noted else node for node in nodes]


def _with_status(node: Progress, noted: Status, running: bool) -> Progress:
    memory = noted.memory_bytes if running and node.buckets is not None else None
    return replace(node, memory_bytes=memory, largest_keys=noted.largest_keys)
