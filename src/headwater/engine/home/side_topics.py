"""The topics of what a node sets aside, late rows and dead letters: whether they are still those it wrote to.

Which topics they are, and where they ended when they were begun, is noted beside the node's checkpoint. Such
rows never come again, so a node does not go on into a topic that was made anew as if nothing had been.

Invariant: a topic is noted before a row goes there, and what is noted is replaced only by what holds it too.
"""

from __future__ import annotations

from pathlib import Path

from headwater.engine.home import notes
from headwater.errors import PipelineError, UnknownTopic
from headwater.log import Log, Position
from headwater.pipeline.node import Node
from headwater.sinks.topic import missing_records

_NOTE = "aside.json"


def note(home: Path, log: Log, topic: str) -> None:
    """Note that rows of a version of a node go to a topic from now on."""
    known: dict[str, str] = notes.read(home / _NOTE) or {}
    noted = {**known, topic: str(log.resolve(topic, "latest"))}
    if noted != known:
        notes.write(home / _NOTE, noted)


def check(home: Path, log: Log, node: Node) -> None:
    """Refuse to let a node go on whose rows that were set aside are gone."""
    for text in (notes.read(home / _NOTE) or {}).values():
        was = Position.parse(text)
        lost = _lost(log, was)
        if lost is not None:
            raise PipelineError(
                f'topic "{was.topic}" has lost rows that {node.title} had set aside',
                detail=lost,
                hint=f"bring the topic back if there is a copy of it; or {node.recompute_hint}; "
                f'or remove "{home / _NOTE}" to go on without them',
                location=node.location,
            )


def _lost(log: Log, was: Position) -> str | None:
    try:
        return missing_records(was, log.resolve(was.topic, "latest"))
    except UnknownTopic:
        return f'topic "{was.topic}" was deleted'
