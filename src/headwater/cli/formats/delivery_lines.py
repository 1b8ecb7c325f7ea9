"""Deliveries of a node in words: what waits, and what is set aside.

Invariant: a node that has delivered everything has nothing to say.
"""

from __future__ import annotations

from collections.abc import Iterator

from headwater import Progress
from headwater.cli.formats import units


def lines(progress: Progress) -> Iterator[tuple[str, str]]:
    """Yield what is to be said of the deliveries of a node, each with the kind of line that it is."""
    status = progress.deliveries
    if status is None:
        return
    title = f'{progress.kind} "{progress.node}"'
    if status.alert is not None:
        yield "warning", f"{title}: {status.alert}"
    if status.waiting:
        number = units.plural(status.waiting, "delivery")
        why = f"; the last attempt: {status.error}" if status.error else ""
        yield "note", f"{title} has {number} waiting{why}"
