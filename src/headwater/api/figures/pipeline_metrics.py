"""The figures of pipelines for Prometheus, by what their runners have noted, whether they run or not."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from headwater.api.captures import capture_statuses
from headwater.capture.figures.metrics import CAPTURE_METRICS
from headwater.engine.figures.metrics import CONTENT_TYPE as CONTENT_TYPE
from headwater.engine.figures.metrics import METRICS, labels, metric_text
from headwater.engine.figures.runner_report import read_runner_report
from headwater.engine.figures.status import Status
from headwater.pipeline.pipeline import Pipeline


def pipeline_metrics(pipelines: Sequence[Pipeline]) -> str:
    """Return the figures of pipelines in Prometheus' text form, as their runners have last noted them.

    A node of a pipeline that does not run is not up; its counts are those of its last run.
    """
    nodes = {
        labels(pipeline=pipeline.name, node=status.node): status
        for pipeline in pipelines
        for status in _statuses(pipeline)
    }
    captures = {
        labels(pipeline=pipeline.name, capture=status.capture): status
        for pipeline in pipelines
        for status in capture_statuses(pipeline)
    }
    told = metric_text(METRICS, nodes)
    return told + (metric_text(CAPTURE_METRICS, captures) if captures else "")


def _statuses(pipeline: Pipeline) -> list[Status]:
    report = read_runner_report(pipeline.home)
    if report is None:
        return []
    if report.is_running(time.time()):
        return list(report.figures.nodes)
    return [replace(each, state="waiting", rate=0.0) for each in report.figures.nodes]
