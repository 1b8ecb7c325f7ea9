"""Whether the inputs of a node still hold what it has to read next.

A topic may have been deleted and made again under its name, retention may have passed where a node stands,
and a log that was restored from a copy may end before it. Spark would go on in silence.

Invariant: a node goes on only in the very topics that it has read, and only where no record in between is
missing.
"""

from __future__ import annotations

from collections.abc import Iterable

from headwater.errors import InputLost, OffsetLost, TopicReplaced
from headwater.log import Log, Position
from headwater.pipeline.node import Node


def check(log: Log, node: Node, places: Iterable[Position]) -> None:
    """Refuse to go on from places that are not in their topics any more."""
    for at in places:
        try:
            log.resolve(at.topic, at)
        except TopicReplaced as error:
            raise InputLost(
                f'topic "{at.topic}" is not the one that {node.title} has read',
                detail=error.detail,
                hint=f"{node.recompute_hint}, from the topic that is there",
                location=node.location,
            ) from error
        except OffsetLost as error:
            raise _lost(log, node, at, error) from error


def _lost(log: Log, node: Node, at: Position, error: OffsetLost) -> InputLost:
    first = log.resolve(at.topic, "earliest").offsets
    gone = sum(max(0, first[number] - offset) for number, offset in at.offsets.items())
    if not gone:
        return InputLost(
            f'topic "{at.topic}" ends before where {node.title} has read',
            detail=error.detail,
            hint=f"bring the end of the topic back if there is a copy of it; or {node.recompute_hint}",
            location=node.location,
        )
    return InputLost(
        f'{gone:,} record{"s" if gone != 1 else ""} of topic "{at.topic}" that {node.title} has not read '
        f"{'are' if gone != 1 else 'is'} gone",
        detail=f"{error.message}: retention has passed where the pipeline stands",
        hint=f"{node.recompute_hint}, from what is left; let retention be longer than a pipeline may rest",
        location=node.location,
    )
