"""Waiting until a view has got as far as a reader needs: reading one's own writes.

What was written may be further upstream: then the streams in between are waited for first, and the view until
it has what they had written by then. Invariant: what is committed while nobody looks is seen by the next one.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Protocol

from headwater.errors import Behind, TopicReplaced, UsageError, nearest
from headwater.log.position import Position
from headwater.views.reading import Reading
from headwater.views.view_version import ViewVersion

_POLL_SECONDS = 0.02


class UpstreamPositions(Protocol):
    """What tells how far the streams of a pipeline have carried what was written."""

    def carried(self, wanted: Position, inputs: Collection[str]) -> list[Position] | None:
        """Return the positions in topics behind which all lies that comes of what is before another one.

        None where streams in between have not got that far; no positions where there are no such streams.
        """


def wait(
    reading: Reading,
    wanted: Position,
    timeout: float,
    waited: float = 0.0,
    upstream: UpstreamPositions | None = None,
) -> None:
    """Return when a view's results include everything before a position of an input, or of what is upstream.

    ``waited`` is for how many seconds that has been tried before.
    """
    began = time.monotonic()
    positions = [wanted] if upstream is None else _in_inputs(reading, wanted, began + timeout, upstream)
    for position in positions:
        spent = time.monotonic() - began if upstream is not None else 0.0
        _wait(reading, position, max(0.0, timeout - spent), waited + min(spent, timeout))


def _in_inputs(
    reading: Reading, wanted: Position, deadline: float, upstream: UpstreamPositions
) -> list[Position]:
    """Return the positions in a view's own inputs that it has to get to."""
    while True:
        entry = reading.entry()
        inputs = [position.topic for position in entry.positions]
        carried = (
            None if not inputs else [wanted] if wanted.topic in inputs else upstream.carried(wanted, inputs)
        )
        if carried is not None:
            return carried or [wanted]  # which is of another topic, as is told then
        if time.monotonic() >= deadline:
            if not inputs:
                return [wanted]
            raise _not_carried(entry, wanted)
        time.sleep(_POLL_SECONDS)


def _not_carried(entry: ViewVersion, wanted: Position) -> Behind:
    return Behind(
        f'view "{entry.name}" has not caught up in time',
        detail=f'a stream that it reads has not got to "{wanted.brief}"',
        hint="see whether its pipeline runs, or wait longer",
    )


def _wait(reading: Reading, wanted: Position, timeout: float, waited: float) -> None:
    for _ in reading.commits(timeout):
        entry = reading.entry()
        reached = _reached(entry, wanted)
        if reached.passed(wanted):
            return
    raise Behind(
        f'view "{entry.name}" has not caught up within {timeout + waited:g} seconds',
        detail=f'it has read up to "{reached.brief}", not up to "{wanted.brief}": '
        f"{_missing(reached, wanted):,} records are missing",
        hint="see whether its pipeline runs, or wait longer",
    )


def _reached(entry: ViewVersion, wanted: Position) -> Position:
    for position in entry.positions:
        if position.topic == wanted.topic:
            _check_same(entry, position, wanted)
            return position
    if entry.positions:
        inputs = [position.topic for position in entry.positions]
        raise UsageError(
            f'view "{entry.name}" does not read topic "{wanted.topic}"',
            hint=nearest(wanted.topic, inputs) or "it reads: " + ", ".join(inputs),
        )
    return Position(wanted.topic)


def _check_same(entry: ViewVersion, reached: Position, wanted: Position) -> None:
    """Refuse to wait for a place in another topic than the one that the view has read."""
    if None not in (reached.id, wanted.id) and reached.id != wanted.id:
        raise TopicReplaced(
            f'topic "{wanted.topic}" is not the one that view "{entry.name}" has read',
            detail=f"the view is at {reached}, the position waited for is {wanted}",
            hint="rebuild the view if the topic was made again, or take a position of the log it reads",
        )


def _missing(reached: Position, wanted: Position) -> int:
    """Return how many records lie between two positions of a topic."""
    return sum(max(0, offset - reached.offsets.get(p, 0)) for p, offset in wanted.offsets.items())
