"""Ways in, in a line: what came in, what became of it, and what did not become a record.

Invariant: a count that tells of something lost is never left out.
"""

from __future__ import annotations

from headwater.cli.formats import units
from headwater.ingest import IngestStatus

_WORDS = {
    "malformed": "malformed",
    "not_taken": "not taken (events, service checks, samples with a time)",
    "dropped_by_kernel": "dropped by the kernel",
    "overrun": "dropped: the log is too slow",
    "gauges_forgotten": "gauges whose levels are forgotten: there are too many",
    "too_long": "too long",
    "dead": "did not fit",
    "truncations": "times the file was truncated before it was read",
    "cut_off": "lines cut off",
    "refused": "refused",
}


def line(status: IngestStatus) -> str:
    """Return how a way in is doing."""
    came = [units.plural(status.counts[name], name[:-1]) for name in _CAME if name in status.counts]
    rows = units.plural(status.counts.get("rows", 0), "row")
    lost = [f"{count:,} {_WORDS[name]}" for name, count in status.losses.items()]
    return ", ".join([f"{status.name}: {status.state}", *came, rows, *lost])


def warning(status: IngestStatus) -> str:
    """Return what did not become a record."""
    lost = ", ".join(f"{count:,} {_WORDS[name]}" for name, count in status.losses.items())
    return f'ingest "{status.name}": {lost}'


_CAME = ("datagrams", "lines", "deliveries")
