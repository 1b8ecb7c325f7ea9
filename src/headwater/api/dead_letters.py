"""What nodes have set aside: records on which their code failed, and deliveries that did not arrive.

Records are appended to their topics again, deliveries are sent again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from headwater import durable
from headwater.api.subject import Subject, node_of, pipeline_of
from headwater.engine.failure.dead_letters import DeadLetters, LastLetter
from headwater.engine.home import notes
from headwater.errors import UsageError
from headwater.log import Log, Position
from headwater.log.open import open as open_log
from headwater.pipeline.node import Node, SinkNode
from headwater.pipeline.pipeline import Pipeline
from headwater.sinks.delivery.figures import discard_delivery, redrive_deliveries, set_aside
from headwater.values.json_ready import JsonReady

_REFUSED = "sets no records aside"


@dataclass(frozen=True)
class DeadLetter(JsonReady):
    """A record that a node has set aside because its code fails on it, or a delivery that did not arrive."""

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
    delivery: str | None = None
    """The id of a delivery; then ``record`` is what it says."""


def dead_letters(pipeline: Subject, node: str | None = None) -> list[DeadLetter]:
    """Return the records that the nodes of a pipeline, or one of them, have set aside; the oldest first.

    A node does so that is declared with ``on_error="dead_letter"``. Such a record is left out of everything
    that the node reads from then on. Deliveries of a sink follow: those that were refused, or all that wait
    for an endpoint that stays dead, up to 10,000.
    """
    found = pipeline_of(pipeline)
    nodes = found.order() if node is None else (node_of(found, node, _REFUSED),)
    with open_log(found.log) as log:
        return [letter for each in nodes for letter in _letters(log, found, each)]


def redrive(pipeline: Subject, node: str) -> int:
    """Append the records that a node has set aside to their topics again; return how many were appended.

    Correct the code first, and restart the pipeline. Each is a new record of its topic, which every reader of
    the topic meets; it is appended once, however often this is called. Deliveries that are set aside are sent
    again, in their order and with what is behind them, by the pipeline that runs or when it runs next; they
    are counted too.
    """
    found = pipeline_of(pipeline)
    chosen = node_of(found, node, _REFUSED)
    _check_home(found)
    outbox = _outbox(found, chosen)
    again = 0 if outbox is None else redrive_deliveries(outbox)
    with open_log(found.log) as log:
        letters = DeadLetters(log, found.name, chosen)
        end = letters.end()
        done = letters.redrive()
        if end is not None:
            durable.make(found.home / "nodes" / chosen.name)
            notes.write(_redriven(found, chosen), str(end))
        return done + again


def discard(pipeline: Subject, node: str, delivery: str) -> None:
    """Give up a delivery that was refused, by its id, so that what its key has next can go."""
    found = pipeline_of(pipeline)
    chosen = node_of(found, node, _REFUSED)
    outbox = _outbox(found, chosen)
    if outbox is None or not discard_delivery(outbox, delivery):
        raise UsageError(
            f'{chosen.title} has set no delivery "{delivery}" aside',
            hint=f"`headwater dead show FILE {node}` lists those that it has",
        )


def _check_home(pipeline: Pipeline) -> None:
    """Refuse to redrive where what was redriven would be noted on this machine alone."""
    if pipeline.home_store is not None:
        raise UsageError(
            "dead letters of a pipeline with its home in an object store cannot be redriven yet",
            hint="send the rows again that its dead-letter topic has",
        )


def _outbox(pipeline: Pipeline, node: Node) -> Path | None:
    return node.outbox(pipeline.home) if isinstance(node, SinkNode) else None


def waiting_letters(log: Log, pipeline: Pipeline, node: Node) -> LastLetter | None:
    """Return how many records of a node were set aside since they were last redriven, and the newest."""
    text = notes.read(_redriven(pipeline, node))
    return DeadLetters(log, pipeline.name, node).last(None if text is None else Position.parse(text))


def _redriven(pipeline: Pipeline, node: Node) -> Path:
    """Return where it is noted up to where the dead letters of a node were redriven."""
    return pipeline.home / "nodes" / node.name / "redriven.json"


def _letters(log: Log, pipeline: Pipeline, node: Node) -> Iterator[DeadLetter]:
    for row in DeadLetters(log, pipeline.name, node).rows():
        yield DeadLetter(node=node.name, **row)
    outbox = _outbox(pipeline, node)
    for each in () if outbox is None else set_aside(outbox):
        yield DeadLetter(node.name, None, None, None, each.error, each.body, each.at, delivery=each.id)
