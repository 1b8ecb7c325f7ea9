"""The figures of captures for Prometheus."""

from __future__ import annotations

import re
from pathlib import Path

from headwater.capture.figures.metrics import CAPTURE_METRICS, text
from headwater.capture.figures.status import CaptureStatus
from headwater.capture.state import SnapshotProgress

DONE = {"customers": SnapshotProgress((1,), 5, True)}
STATUS = CaptureStatus("crm", "streaming", 12, snapshots=DONE, retained=4096, alert="much")


def values(told: str) -> dict[str, float]:
    found = re.findall(r'^(\w+)\{pipeline="shop",capture="crm"\} (\S+)$', told, flags=re.MULTILINE)
    return {name: float(value) for name, value in found}


def test_each_figure_is_told_with_its_capture() -> None:
    assert values(text("shop", [STATUS])) == {
        "headwater_capture_up": 1,
        "headwater_capture_changes_total": 12,
        "headwater_capture_snapshot_rows": 5,
        "headwater_capture_pending_snapshots": 0,
        "headwater_capture_stopped_tables": 0,
        "headwater_capture_retained_bytes": 4096,
        "headwater_capture_retained_alert": 1,
    }


def test_a_pipeline_without_captures_has_no_such_figures() -> None:
    assert text("shop", []) == ""


def test_each_is_documented() -> None:
    page = (Path(__file__).parents[4] / "docs" / "running.md").read_text()
    assert all(f"| `{metric.name}` | {metric.type} |" in page for metric in CAPTURE_METRICS)
