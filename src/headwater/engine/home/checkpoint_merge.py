"""Writes one checkpoint for queries that have come equally far, so that their nodes can share one query.

A checkpoint says where a query is in its inputs, and nothing of its nodes. So where several are at the same
offsets, another checkpoint is written that says the same once, numbered after the last micro-batch of all,
and their nodes are linked to it one after the other. Which queries are merged, and when, is decided in
``headwater.engine.query_merging``.

Invariant: at any step, a node is linked to a checkpoint that is whole and says where the node is.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwater import durable
from headwater.engine.home import checkpoint, node_progress
from headwater.engine.home.node_progress import NodeProgress
from headwater.log import Position


@dataclass(frozen=True)
class QueryOffsets:
    """Where a query is after a micro-batch."""

    checkpoint: Path
    batch: int
    inputs: Mapping[str, Any]
    """The offsets of each input, as Spark has stored them."""

    def position(self, name: str) -> Position:
        """Return how far it has come in an input."""
        stored = self.inputs[name]
        offsets = {int(partition): offset for partition, offset in stored["offsets"].items()}
        return Position(stored["topic"], offsets, stored["id"])


def last_done(path: Path, inputs: Collection[str]) -> QueryOffsets | None:
    """Return where a query was, in its inputs, after the last micro-batch that was done; None if none was."""
    batch = checkpoint.last_done(path)
    return _after(path, batch, inputs) if batch >= 0 else None


def last_planned(path: Path, inputs: Collection[str]) -> QueryOffsets:
    """Return where a query is after the last micro-batch that it has planned, which it is sure to come to."""
    return _after(path, checkpoint.last_batch(path), inputs)


def stopped_at(path: Path, inputs: Collection[str]) -> QueryOffsets | None:
    """Return where a query is that is not running; None if a micro-batch is under way, or none was done."""
    done = last_done(path, inputs)
    return done if done is not None and done.batch == checkpoint.last_batch(path) else None


def _after(path: Path, batch: int, inputs: Collection[str]) -> QueryOffsets:
    """Return where a query is; what it keeps of inputs that it no longer reads does not count."""
    stored = json.loads(checkpoint.offsets_file(path, batch).read_text().splitlines()[-1])
    return QueryOffsets(path, batch, {name: stored[name] for name in inputs if name in stored})


def furthest(queries: Sequence[QueryOffsets]) -> dict[str, Position]:
    """Return the furthest position in each input that any of the queries has come to."""
    positions: dict[str, Position] = {}
    for query in queries:
        for name in query.inputs:
            at, before = query.position(name), positions.get(name)
            offsets = dict(at.offsets)
            for partition, offset in (before.offsets if before is not None else {}).items():
                offsets[partition] = max(offset, offsets.get(partition, 0))
            positions[name] = Position(at.topic, offsets, at.id)
    return positions


def lag(query: QueryOffsets, positions: Mapping[str, Position]) -> int:
    """Return how many records a query has to read to come to the positions."""
    return sum(
        max(0, offset - query.position(name).offsets.get(partition, 0))
        for name in query.inputs
        for partition, offset in positions[name].offsets.items()
    )


def is_at(query: QueryOffsets, positions: Mapping[str, Position]) -> bool:
    """Tell whether a query is at the positions, in the very topics."""
    return all(query.position(name) == positions[name] for name in query.inputs)


def are_aligned(queries: Sequence[QueryOffsets]) -> bool:
    """Tell whether the queries are at the same position in every input that they share."""
    positions = furthest(queries)
    return all(is_at(query, positions) for query in queries)


def merge(queries: Sequence[QueryOffsets], done: Mapping[Path, NodeProgress], into: Path) -> None:
    """Write a checkpoint that says where aligned queries are, and what their nodes have done."""
    assert are_aligned(queries)
    with durable.drafting_tree(into) as draft:
        _write_last_batch(queries, draft)
        start = {
            name: checkpoint.read_start(query.checkpoint)[name] for query in queries for name in query.inputs
        }
        checkpoint.write_start(draft, start)
        node_progress.write(draft, done)
        checkpoint.assign_new_id(draft)


def _write_last_batch(queries: Sequence[QueryOffsets], draft: Path) -> None:
    """Write Spark's files of a micro-batch that is done: the offsets of all, and the commit."""
    for folder in ("offsets", "commits"):
        durable.make(draft / folder)
    first, batch = queries[0], max(query.batch for query in queries)
    header = checkpoint.offsets_file(first.checkpoint, first.batch).read_text().splitlines()[:2]
    offsets = "\n".join([*header, json.dumps(_merged_offsets(queries))])
    for number in range(max(batch - 1, 0), batch + 1):  # a repeated batch begins at the one before
        durable.write(checkpoint.offsets_file(draft, number), offsets)
    commit = (first.checkpoint / "commits" / str(first.batch)).read_text()
    durable.write(draft / "commits" / str(batch), commit)


def _merged_offsets(queries: Sequence[QueryOffsets]) -> dict[str, Any]:
    """Return the offsets of all inputs; of what is known of time there, what the first query knows."""
    return {name: stored for query in reversed(queries) for name, stored in query.inputs.items()}
