"""The figures of captures for Prometheus, beside those of the nodes."""

from __future__ import annotations

from collections.abc import Iterable

from headwater.capture.figures.status import CaptureStatus
from headwater.engine.figures.metrics import Metric, labels, metric_text

CAPTURE_METRICS: tuple[Metric[CaptureStatus], ...] = (
    Metric("headwater_capture_up", "gauge", "1 while the capture reads, 0 while it waits or is broken.",
           lambda status: status.state in ("snapshot", "streaming")),
    Metric("headwater_capture_changes_total", "counter", "Changes that the capture has written.",
           lambda status: status.changes),
    Metric("headwater_capture_snapshot_rows", "gauge", "Rows of the snapshots that the capture has written.",
           lambda status: sum(each.rows for each in status.snapshots.values())),
    Metric("headwater_capture_pending_snapshots", "gauge", "Tables whose snapshot is not complete.",
           lambda status: sum(not each.done for each in status.snapshots.values())),
    Metric("headwater_capture_stopped_tables", "gauge", "Tables that are captured no more.",
           lambda status: len(status.stopped)),
    Metric("headwater_capture_delay_seconds", "gauge", "Time from the last change's commit to its writing.",
           lambda status: status.delay),
    Metric("headwater_capture_behind_seconds", "gauge", "Age of the time before which all is captured.",
           lambda status: status.behind),
    Metric("headwater_capture_retained_bytes", "gauge", "What the database keeps for the capture.",
           lambda status: status.retained),
    Metric("headwater_capture_retained_alert", "gauge", "1 while the database keeps more than it should.",
           lambda status: status.alert is not None),
)  # fmt: skip


def text(pipeline: str, statuses: Iterable[CaptureStatus]) -> str:
    """Return the figures of a pipeline's captures in Prometheus' text form; nothing where it has none."""
    named = {labels(pipeline=pipeline, capture=each.capture): each for each in statuses}
    return metric_text(CAPTURE_METRICS, named) if named else ""
