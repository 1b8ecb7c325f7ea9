"""Proves a node right: computes it again as a batch, up to the same positions, and compares.

The same function is called, over all rows at once. What the stream judged to be late is part of its
history: those rows are left out here too. Invariant: nothing is changed, and the pipeline may run
meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from headwater.engine import applying, checkpoint
from headwater.engine.calling import call
from headwater.engine.checkpoint import Reached
from headwater.engine.comparing import frozen
from headwater.engine.query import Query
from headwater.engine.runner import Runner, late_producer
from headwater.errors import UsageError
from headwater.log import Position
from headwater.node import Declaration, Node
from headwater.sinks.keyed import declare, settle

EXAMPLES = 5
ROW_BITS = 32

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Verdict:
    """How a node's stored results compare with those of a batch over the same input."""

    node: str
    equal: int = 0
    missing: tuple[Row, ...] = ()
    """Rows that the batch has and the node has not."""
    extra: tuple[Row, ...] = ()
    """Rows that the node has and the batch has not."""
    different: tuple[tuple[Row, Row], ...] = ()
    """Rows of one key: what the batch has, what the node has."""

    @property
    def ok(self) -> bool:
        """Whether all rows are equal."""
        return not (self.missing or self.extra or self.different)

    def examples(self) -> Iterator[str]:
        """Yield some of what is wrong, in words."""
        yield from (f"missing {_text(row)}" for row in self.missing[:EXAMPLES])
        yield from (f"extra {_text(row)}" for row in self.extra[:EXAMPLES])
        yield from (f"should be {_text(a)}, is {_text(b)}" for a, b in self.different[:EXAMPLES])


def verify(runner: Runner, name: str) -> Verdict:
    """Compute a view or stream again and compare it with what is stored."""
    query = runner.nodes[name].query
    if query.node.kind == "view":
        return _view(runner, query)
    if query.node.kind == "stream":
        return _stream(runner, query)
    raise UsageError(f"{query.node.title} cannot be verified", detail="what a sink holds is not known here")


def _view(runner: Runner, query: Query) -> Verdict:
    batch, stored = _snapshot(runner, query.node)
    if batch < 0:
        return Verdict(query.node.name)
    expected = recomputed(runner, query, batch)
    fitted = settle(
        expected.toArrow().cast(query.shape.schema), declare(query.node.title, query.schema, query.node.key)
    )
    rows = fitted.rows.filter(pa.array(~fitted.deleted)).to_pylist()
    return compared(query.node, rows, stored.to_pylist(), query.schema)


def _stream(runner: Runner, query: Query) -> Verdict:
    assert query.node.topic is not None
    batch = checkpoint.last_done(query.checkpoint)
    if batch < 0:
        return Verdict(query.node.name)
    producer = f"{runner.pipeline.name}.{query.node.name}"
    expected = _counted(recomputed(runner, query, batch).toArrow().cast(query.shape.schema), query)
    stored = _counted(_before(runner, query.node.topic, batch, producer), query)
    missing, extra = (
        tuple(dict(row) for row in rest.elements()) for rest in (expected - stored, stored - expected)
    )
    return Verdict(query.node.name, (expected & stored).total(), missing, extra)


def _counted(rows: pa.Table, query: Query) -> Counter[tuple[tuple[str, Hashable], ...]]:
    """Return how often each row is there; where only the last of each key counts, those."""
    listed = rows.to_pylist()
    operator = query.stage.operator if query.stage else None
    if operator is not None and operator.settles:
        last = {tuple(_hashable(row.get(name)) for name in operator.key): row for row in listed}
        listed = list(last.values())
    return Counter(map(_frozen, listed))


def recomputed(runner: Runner, query: Query, batch: int) -> DataFrame:
    """Return what a node's function makes of all its input up to a batch."""
    reached, start = checkpoint.reached(query.checkpoint, batch), runner.nodes[query.node.name].version.start
    frames = {
        name: query.inputs.batch(each, start, _position(reached, each))
        for name, each in query.upstreams.items()
    }
    late = _late(runner, query, batch)
    with applying.during(applying.whole(reached.watermark, late)):
        return call(query.node, frames)


def _position(reached: Reached, upstream: Any) -> Position:
    return next(each for each in reached.positions if each.topic == upstream.topic)


def _late(runner: Runner, query: Query, batch: int) -> DataFrame | None:
    """Return the rows that the node's operator has judged to be late, up to a batch."""
    topic = runner.late_topic(query.node)
    if query.stage is None or topic not in {each.name for each in runner.log.topics()}:
        return None
    producer = late_producer(topic, runner.nodes[query.node.name].version)
    found = _before(runner, topic, batch, producer).cast(query.stage.schema)
    return runner.spark.createDataFrame(found) if found.num_rows else None


def _before(runner: Runner, topic: str, batch: int, producer: str) -> pa.Table:
    """Return the rows that a node has written to a topic as a producer, up to a batch."""
    schema = runner.log.topic(topic).read_schema
    found = [pa.Table.from_batches([each]) for each in runner.log.read(topic, meta=True)]
    if not found:
        return schema.empty_table()
    rows = pa.concat_tables(found)
    before = pc.less(rows["_sequence"], (batch + 1) << ROW_BITS)
    return rows.filter(pc.and_(before, pc.equal(rows["_producer"], producer))).select(schema.names)


def _snapshot(runner: Runner, node: Node) -> tuple[int, pa.Table]:
    """Return a view's rows and the batch that they are of; a commit in between is noticed."""
    view = runner.store.view(node.name)
    while True:
        batch = view.batch()
        rows = view.scan().to_table()
        if view.batch() == batch:
            return batch, rows


def compared(node: Declaration, expected: Iterable[Row], stored: Iterable[Row], schema: pa.Schema) -> Verdict:
    """Compare rows that a node should have with those that it has, by its key."""
    wanted, found = _by_key(expected, node), _by_key(stored, node)
    both = [(wanted[key], found[key]) for key in wanted if key in found]
    different = tuple((a, b) for a, b in both if frozen(a, schema) != frozen(b, schema))
    missing = tuple(row for key, row in wanted.items() if key not in found)
    extra = tuple(row for key, row in found.items() if key not in wanted)
    return Verdict(node.name, len(both) - len(different), missing, extra, different)


def _by_key(rows: Iterable[Row], node: Declaration) -> dict[Hashable, Row]:
    return {tuple(_hashable(row[name]) for name in node.key): row for row in rows}


def _frozen(row: Row) -> tuple[tuple[str, Hashable], ...]:
    return tuple((name, _hashable(value)) for name, value in row.items())


def _hashable(value: Any) -> Hashable:
    if isinstance(value, dict):
        return tuple((key, _hashable(each)) for key, each in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(_hashable, value))
    return "NaN" if value != value else value  # a number that is not even itself


def _text(row: Row) -> str:
    return "(" + ", ".join(f"{name}={value}" for name, value in row.items()) + ")"
