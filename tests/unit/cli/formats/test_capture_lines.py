"""How a capture is told to people."""

from __future__ import annotations

from dataclasses import replace

from headwater import CaptureStatus
from headwater.capture.state import SnapshotProgress
from headwater.cli.formats.capture_lines import COLUMNS, cells, line, warnings
from headwater.durations import now
from headwater.errors import SourceUnavailable

STREAMING = CaptureStatus(
    "crm", "streaming", 1200, "0/1", {"customers": SnapshotProgress((5,), 5000, True)},
    rate=41.7, behind=0.44, retained=2_500_000,
)  # fmt: skip
SNAPSHOT = CaptureStatus(
    "crm", "snapshot", snapshots={"customers": SnapshotProgress((5,), 5000)}, expected={"customers": 20_000},
    snapshot_rate=3000.0,
)  # fmt: skip


def test_a_capture_is_told_in_a_line() -> None:
    told = "crm: streaming, 5,000 rows of snapshots, 1,200 changes (42/s), 0.4 s behind, 2.5 MB kept"
    assert line(STREAMING) == f"{told} by the database"
    assert line(SNAPSHOT) == "crm: snapshot, 5,000 of about 20,000 rows of snapshots (3,000/s), 0 changes"


def test_a_capture_is_told_in_cells() -> None:
    told = cells(replace(STREAMING, noted=now() - 61_000_000, behind=0.0))
    assert told == ("crm", "streaming", "1 min", 1200, "42", "5,000 rows", "0 s", "2.5 MB")
    assert len(told) == len(COLUMNS)
    assert cells(CaptureStatus("crm", "starting")) == ("crm", "starting", None, 0, "0", None, None, None)


def test_what_is_wrong_is_told() -> None:
    away = SourceUnavailable("the database cannot be read", detail="connection refused")
    status = replace(
        STREAMING, state="waiting", error=away, stopped={"orders": "it was dropped"}, alert="much"
    )
    assert list(warnings(status)) == [
        'capture "crm" waits: the database cannot be read (connection refused)',
        'table "orders" of capture "crm" is captured no more: it was dropped',
        'capture "crm": much',
    ]
    assert list(warnings(STREAMING)) == []
