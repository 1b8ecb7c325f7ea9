"""How a capture is doing, in a line of words and in cells of a table; and what somebody should look at."""

from __future__ import annotations

from collections.abc import Iterator

from headwater import CaptureStatus
from headwater.cli.formats import units
from headwater.durations import now

COLUMNS = ("capture", "state", ">ago", ">changes", ">changes/s", ">snapshot", ">behind", ">kept for it")


def line(status: CaptureStatus) -> str:
    """Return how a capture is doing in one line."""
    told = [f"{status.capture}: {status.state}"]
    if status.snapshots:
        rate = f" ({status.snapshot_rate:,.0f}/s)" if status.state == "snapshot" else ""
        told.append(f"{snapshot(status)} of snapshots{rate}")
    rate = f" ({status.rate:,.0f}/s)" if status.state == "streaming" else ""
    told.append(units.plural(status.changes, "change") + rate)
    if status.behind is not None and status.state in ("snapshot", "streaming"):
        told.append(f"{status.behind:,.1f} s behind")
    if status.retained is not None:
        told.append(f"{units.size(status.retained)} kept by the database")
    return ", ".join(told)


def cells(status: CaptureStatus) -> tuple[object, ...]:
    """Return a capture as a row of a table."""
    ago = None if status.noted is None else units.age(max(0, now() - status.noted))
    behind = None if status.behind is None else units.age(int(status.behind * 1e6))
    kept = None if status.retained is None else units.size(status.retained)
    rate = f"{status.rate:,.0f}"
    return status.capture, status.state, ago, status.changes, rate, snapshot(status) or None, behind, kept


def snapshot(status: CaptureStatus) -> str:
    """Return how many rows snapshots have, and of about how many while they are made."""
    rows = sum(each.rows for each in status.snapshots.values())
    if status.state != "snapshot":
        return units.plural(rows, "row") if status.snapshots else ""
    return f"{rows:,} of about {sum(status.expected.values()):,} rows"


def warnings(status: CaptureStatus) -> Iterator[str]:
    """Yield what keeps a capture from going on, wholly or with some tables, or may soon."""
    if status.error is not None and status.state in ("waiting", "broken"):
        why = f"{status.error.message}" + (f" ({status.error.detail})" if status.error.detail else "")
        yield f'capture "{status.capture}" {_VERBS[status.state]}: {why}'
    for table, why in status.stopped.items():
        yield f'table "{table}" of capture "{status.capture}" is captured no more: {why}'
    if status.alert is not None:
        yield f'capture "{status.capture}": {status.alert}'


_VERBS = {"waiting": "waits", "broken": "has ended"}
