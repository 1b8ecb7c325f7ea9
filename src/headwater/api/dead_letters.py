"""Records on which a node's code failed: read, and appended to their topics again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from headwater.api.subject import Subject, node_of, pipeline_of
from headwater.engine.failure.dead_letters import DeadLetters
from headwater.log import Log
from headwater.log.open import open as open_log
from headwater.pipeline.node import Node
from headwater.pipeline.pipeline import Pipeline
from headwater.values.json_ready import JsonReady

_REFUSED = "sets no records aside"


@dataclass(frozen=True)
class DeadLetter(JsonReady):
    """A record that a node has set aside because its code fails on it."""

    node: str
    topic: str | None
    """Where it came from; None for a row that an operator failed on, which came from no one place."""
    partition: int | None
    offset: int | None
    error: str
    record: str | None
    """The record as JSON; None where it could no longer be read."""
    at: datetime
    """When it was set aside."""
    deleted: bool | None = None
    """Whether the record deletes its key."""
    occurred: datetime | None = None
    """Since when, if it does."""
    topic_id: str | None = None
    """Another topic of the same name has other records at these places."""


def dead_letters(pipeline: Subject, node: str | None = None) -> list[DeadLetter]:
    """Return the records that the nodes of a pipeline, or one of them, have set aside; the oldest first.

    A node does so that is declared with ``on_error="dead_letter"``. Such a record is left out of everything
    that the node reads from then on.
    """
    found = pipeline_of(pipeline)
    nodes = found.order() if node is None else (node_of(found, node, _REFUSED),)
    with open_log(found.log) as log:
        return [letter for each in nodes for letter in _letters(log, found, each)]


def redrive(pipeline: Subject, node: str) -> int:
    """Append the records that a node has set aside to their topics again; return how many were appended.

    Correct the code first, and restart the pipeline. Each is a new record of its topic, which every reader of
    the topic meets; it is appended once, however often this is called.
    """
    found = pipeline_of(pipeline)
    chosen = node_of(found, node, _REFUSED)
    with open_log(found.log) as log:
        return DeadLetters(log, found.name, chosen).redrive()


def _letters(log: Log, pipeline: Pipeline, node: Node) -> Iterator[DeadLetter]:
    for row in DeadLetters(log, pipeline.name, node).rows():
        yield DeadLetter(node=node.name, **row)
