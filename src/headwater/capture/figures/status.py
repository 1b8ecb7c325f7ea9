"""How a capture is doing: the figures that it notes with its state, and what is told of them.

They are in the log, so that any process can tell; only what keeps a capture from being opened at all is known
to the process that tries. Invariant: what is told of a capture that does not run is what it noted last, and
says when that was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headwater import durations
from headwater.capture.state import CaptureFigures, CaptureState, SnapshotProgress
from headwater.errors import HeadwaterError
from headwater.values.json_ready import JsonReady, calendar_time

FRESH = 20_000_000
"""Microseconds after which a capture that runs has noted something anew."""


@dataclass(frozen=True)
class CaptureStatus(JsonReady):
    """How a capture is doing."""

    capture: str
    state: str
    """``starting``, ``snapshot``, ``streaming``, ``waiting`` (for what is away), ``broken``, ``ended``, or
    ``silent``: it has noted nothing for a while, so it does not run or cannot reach the log."""
    changes: int = 0
    """Changes of the stream that were written since it began."""
    position: str | None = None
    snapshots: Mapping[str, SnapshotProgress] = field(default_factory=dict)
    stopped: Mapping[str, str] = field(default_factory=dict)
    """Tables that are captured no more, and why."""
    error: HeadwaterError | None = None
    expected: Mapping[str, int] = field(default_factory=dict)
    """About how many rows the tables have of which a snapshot is made."""
    rate: float = 0.0
    """Changes per second, of late."""
    snapshot_rate: float = 0.0
    """Rows of snapshots per second, of late."""
    committed: int | None = None
    """When the newest change was committed, in microseconds since 1970."""
    delay: float | None = None
    """Seconds from its commit until it was written."""
    behind: float | None = None
    """Seconds since the time before which everything that is committed was captured."""
    retained: int | None = None
    """About how many bytes the database keeps for it; None where it does not tell."""
    alert: str | None = None
    """What somebody should look at though it goes on: the database keeps too much for it."""
    noted: int | None = None
    """When that was, in microseconds since 1970."""

    def facts(self) -> dict[str, Any]:
        """Return its fields, with times as such and figures rounded."""
        return {
            **super().facts(),
            "rate": round(self.rate, 1),
            "snapshot_rate": round(self.snapshot_rate, 1),
            "committed": calendar_time(self.committed),
            "delay": None if self.delay is None else round(self.delay, 3),
            "behind": None if self.behind is None else round(self.behind, 3),
            "noted": calendar_time(self.noted),
        }


def noted_status(name: str, kept: CaptureState) -> CaptureStatus:
    """Return how a capture was doing when it last noted its state."""
    figures = kept.figures
    going = figures.state in ("snapshot", "streaming")
    silent = going and figures.noted < durations.now() - FRESH
    error = None if figures.error is None else HeadwaterError(figures.error)
    told = status_of(name, "silent" if silent else figures.state, kept, figures, error)
    if silent or not going or figures.reached is None:
        return told
    return replace(told, behind=max(0.0, (figures.noted - figures.reached) / 1e6))  # it goes on meanwhile


def status_of(
    name: str, state: str, kept: CaptureState, figures: CaptureFigures, error: HeadwaterError | None
) -> CaptureStatus:
    """Return the status of a capture with a state and figures."""
    behind = None if figures.reached is None else max(0.0, (durations.now() - figures.reached) / 1e6)
    return CaptureStatus(
        capture=name,
        state=state,
        changes=figures.changes,
        position=kept.position,
        snapshots=kept.snapshots,
        stopped=kept.stopped,
        error=error,
        expected=figures.expected,
        rate=figures.rate,
        snapshot_rate=figures.snapshot_rate,
        committed=figures.committed,
        delay=figures.delay,
        behind=behind,
        retained=figures.retained,
        alert=figures.alert,
        noted=figures.noted or None,
    )
