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
    before: dict[str, str] = notes.read(home / _NOTE) or {}
    after = {**before, topic: str(log.resolve(topic, "latest"))}
    if after != before:
        notes.write(home / _NOTE, after)


def check(home: Path, log: Log, node: Node) -> None:
    """Refuse to let a node go on whose rows that were set aside are gone."""
    for text in (notes.read(home / _NOTE) or {}).values():
        noted = Position.parse(text)
        loss = _loss(log, noted)
        if loss is not None:
            raise PipelineError(
                f'topic "{noted.topic}" has lost rows that {node.title} had set aside',
                detail=loss,
                hint=f"bring the topic back if there is a copy of it; or {node.recompute_hint}; "
                f'or remove "{home / _NOTE}" to go on without them',
                location=node.location,
            )


def _loss(log: Log, noted: Position) -> str | None:
    try:
        return missing_records(noted, log.resolve(noted.topic, "latest"))
    except UnknownTopic:
        return f'topic "{noted.topic}" was deleted'
