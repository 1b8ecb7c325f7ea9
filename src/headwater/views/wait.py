"""Waiting until a view has got as far as a reader needs: reading one's own writes.

Invariant: what is committed while nobody looks is seen by the next look.
"""

from __future__ import annotations

from headwater.errors import Behind, TopicReplaced, UsageError, nearest
from headwater.log.position import Position
from headwater.views.reading import Reading
from headwater.views.view_version import ViewVersion


def wait(reading: Reading, wanted: Position, timeout: float, waited: float = 0.0) -> None:
    """Return when a view's results include everything before a position of one of its inputs.

    ``waited`` is for how many seconds that has been tried before.
    """
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
