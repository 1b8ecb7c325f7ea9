"""Queries that have come equally far become one: so nodes that were added later share with the others.

A checkpoint says where a query is in its inputs, and nothing of its nodes. So where several are at the same
place, another checkpoint is written that says the same once, numbered after the last micro-batch of all, and
their nodes are linked to it one after the other.

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
class Standing:
    """Where a query is."""

    checkpoint: Path
    batch: int
    told: Mapping[str, Any]
    """The offsets of each input, as Spark has stored them."""

    def position(self, name: str) -> Position:
        """Return how far it has come in an input."""
        told = self.told[name]
        return Position(told["topic"], {int(p): at for p, at in told["offsets"].items()}, told["id"])


def last(path: Path, inputs: Collection[str]) -> Standing | None:
    """Return where a query was, in its inputs, after the last micro-batch that was done; None if none was."""
    batch = checkpoint.last_done(path)
    return _after(path, batch, inputs) if batch >= 0 else None


def planned(path: Path, inputs: Collection[str]) -> Standing:
    """Return where a query is after the last micro-batch that it has planned, which it is sure to come to."""
    return _after(path, checkpoint.last_batch(path), inputs)


def standing(path: Path, inputs: Collection[str]) -> Standing | None:
    """Return where a query is that is not running; None if a micro-batch is under way, or none was done."""
    found = last(path, inputs)
    return found if found is not None and found.batch == checkpoint.last_batch(path) else None


def _after(path: Path, batch: int, inputs: Collection[str]) -> Standing:
    """Return where a query is; what it keeps of inputs that it no longer reads does not count."""
    told = json.loads(checkpoint.plan(path, batch).read_text().splitlines()[-1])
    return Standing(path, batch, {name: told[name] for name in inputs if name in told})


def furthest(queries: Sequence[Standing]) -> dict[str, Position]:
    """Return the furthest place in each input that any of some queries has come to."""
    found: dict[str, Position] = {}
    for query in queries:
        for name in query.told:
            at, known = query.position(name), found.get(name)
            offsets = dict(at.offsets)
            for partition, offset in (known.offsets if known is not None else {}).items():
                offsets[partition] = max(offset, offsets.get(partition, 0))
            found[name] = Position(at.topic, offsets, at.id)
    return found


def behind(query: Standing, places: Mapping[str, Position]) -> int:
    """Return how many records a query has to read to come to some places."""
    return sum(
        max(0, offset - query.position(name).offsets.get(partition, 0))
        for name in query.told
        for partition, offset in places[name].offsets.items()
    )


def is_at(query: Standing, places: Mapping[str, Position]) -> bool:
    """Tell whether a query is at some places, in the very topics."""
    return all(query.position(name) == places[name] for name in query.told)


def are_together(queries: Sequence[Standing]) -> bool:
    """Tell whether some queries are at the same place in every input that they share."""
    places = furthest(queries)
    return all(is_at(query, places) for query in queries)


def merge(queries: Sequence[Standing], done: Mapping[Path, NodeProgress], into: Path) -> None:
    """Write a checkpoint that says where some queries are, all at the same place, and what was done there."""
    assert are_together(queries)
    first, batch = queries[0], max(query.batch for query in queries)
    with durable.drafting_tree(into) as draft:
        for folder in ("offsets", "commits"):
            durable.make(draft / folder)
        about = checkpoint.plan(first.checkpoint, first.batch).read_text().splitlines()[:2]
        plan = "\n".join([*about, json.dumps(_united(queries))])
        for number in range(max(batch - 1, 0), batch + 1):  # a repeated batch begins at the one before
            durable.write(checkpoint.plan(draft, number), plan)
        commit = (first.checkpoint / "commits" / str(first.batch)).read_text()
        durable.write(draft / "commits" / str(batch), commit)
        begun = {name: checkpoint.begun(each.checkpoint)[name] for each in queries for name in each.told}
        checkpoint.begin(draft, begun)
        node_progress.write(draft, done)
        checkpoint.identify(draft)


def _united(queries: Sequence[Standing]) -> dict[str, Any]:
    """Return the offsets of all inputs; of what is known of time there, what the first query knows."""
    return {name: told for query in reversed(queries) for name, told in query.told.items()}
