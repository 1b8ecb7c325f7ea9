"""Random pipelines as plain data, from one number each: the graph, the events, and what is done when.

``built`` makes PySpark nodes of a plan; ``naive_oracle`` computes the same plan in plain Python.
Only what ``docs/engine.md`` promises to be independent of arrival is drawn: copies of an event are
exact and other events of its id are far away; a view has a key whose rows have an order.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headwater import Pipeline, agg, dedup, latest, scan, windows

Row = dict[str, Any]
COLUMNS = ("id", "who", "n", "at")
SCHEMA = "id BIGINT, who STRING, n BIGINT, at TIMESTAMP"
STATE = "total BIGINT, seen BIGINT"
PRODUCERS = ("one", "two")
APART = 100
"""Seconds between two events of one id; no ``within`` is longer."""


@dataclass(frozen=True)
class Change:
    """What is done to each row by itself: ``above``, ``but``, ``timed``, ``add``, ``note``, ``choose``."""

    name: str
    column: str = ""
    value: Any = None


@dataclass(frozen=True)
class Operation:
    """The operator of a node; a scan folds the column ``value``, and a window of ``within`` adds it up."""

    name: str
    by: tuple[str, ...]
    within: int = 0
    value: str = ""


@dataclass(frozen=True)
class Topic:
    """What is known of a topic's rows."""

    name: str
    columns: tuple[str, ...]
    key: str | None
    partitions: int
    whole: bool
    """Whether rows of equal id and time are equal."""
    lateness: int = 0


@dataclass(frozen=True)
class Node:
    """A node: what it reads, what it does, and the key of its view or topic."""

    name: str
    kind: str
    reads: tuple[str, ...]
    before: tuple[Change, ...]
    operation: Operation | None
    after: tuple[Change, ...]
    key: tuple[str, ...]
    partitions: int = 1


@dataclass(frozen=True)
class Action:
    """What is done to the harness: ``send``, ``advance``, ``step`` or ``restart``; times are seconds."""

    name: str
    producer: str = ""
    source: str = ""
    rows: tuple[tuple[Any, ...], ...] = ()
    to: int = 0


@dataclass(frozen=True)
class Plan:
    """A pipeline and its history."""

    sources: tuple[Topic, ...]
    nodes: tuple[Node, ...]
    actions: tuple[Action, ...]
    limit: int


def plan(seed: int) -> Plan:
    """Return the plan of a number, always the same."""
    chance = random.Random(seed)
    sources = tuple(_source(chance, f"source{number}") for number in range(chance.choice((1, 1, 2))))
    topics, nodes = list(sources), []
    for number in range(chance.randint(1, 4)):
        node, topic = _node(chance, f"node{number}", topics)
        nodes.append(node)
        topics += [topic] * (node.kind == "stream")
    limit = chance.choice((4, 500_000, 500_000))
    return Plan(sources, tuple(nodes), tuple(_actions(chance, sources)), limit)


def fold(value: str) -> Callable[[Row | None, Row], Row]:
    """Return a fold of a column that tells every order of events from every other."""

    def mixed(state: Row | None, event: Row) -> Row:
        before = state or {"total": 7, "seen": 0}
        mixture = before["total"] * 31 + (event[value] or 0) + 1
        return {"total": mixture % 1_000_003, "seen": before["seen"] + 1}

    return mixed


# The graph


def _source(chance: random.Random, name: str) -> Topic:
    key, partitions = chance.choice(("who", "who", None)), chance.randint(1, 3)
    return Topic(name, COLUMNS, key, partitions, whole=True, lateness=chance.choice((0, 0, 20, 1000)))


def _node(chance: random.Random, name: str, topics: list[Topic]) -> tuple[Node, Topic]:
    """Return a random node, and the topic that it has if it is a stream."""
    read = _read(chance, topics)
    operation = _operation(chance, read)
    kind, key = _kept(chance, read, operation)
    before = _changes(chance, read.columns, filters=True)
    if key == ("id", "at"):
        before = (*before, Change("timed", "at"))  # a view's key has no nulls
    if operation is not None and operation.name != "dedup" and chance.random() < 0.4:
        before = (*before, Change("choose", value=(*operation.by, _number(read.columns), "at")))
    columns = _columns(read.columns, before)
    scanned = operation is not None and operation.name == "scan"
    out = (*operation.by, "at", "total", "seen") if operation is not None and scanned else columns
    # In a stream, a filter behind latest leaves an older row in the place of one that does not pass.
    settled = operation is not None and operation.name == "latest"
    windowed = operation is not None and operation.name == "window"
    after = () if windowed else _changes(chance, out, filters=kind == "view" or not settled)
    whole = read.whole and not scanned and "id" in out
    topic = Topic(name, _columns(out, after), key[0], chance.randint(1, 2), whole)
    reads = tuple(read.name.split("+"))
    return Node(name, kind, reads, before, operation, after, key, topic.partitions), topic


def _read(chance: random.Random, topics: list[Topic]) -> Topic:
    """Return a topic to read, most often the newest, or two that are read together."""
    first = chance.choice((topics[-1], chance.choice(topics)))
    second = chance.choice(topics)
    if second is first or second.columns != first.columns or chance.random() < 0.3:
        return first
    # Rows of two topics have no order, and one may have changed what the other has not.
    whole = all(each.columns == COLUMNS and each.name.startswith("source") for each in (first, second))
    return Topic(f"{first.name}+{second.name}", first.columns, None, 2, whole)


def _operation(chance: random.Random, read: Topic) -> Operation | None:
    by = (chance.choice([name for name in ("who", "id") if name in read.columns]),)
    choices: list[Operation | None] = [
        Operation("latest", by),
        Operation("scan", by, value=_number(read.columns)),
        Operation("window", by, within=chance.choice((5, 20)), value=_number(read.columns)),
    ]
    if read.whole:
        choices += [Operation("dedup", ("id",), within=chance.choice((2, 5, 60)))] * 2
    if read.whole or _ordered(read):
        choices.append(None)
    return chance.choice(choices)


def _changes(chance: random.Random, columns: tuple[str, ...], *, filters: bool) -> tuple[Change, ...]:
    number = _number(columns)
    known = [Change("add", number, chance.randint(-3, 3))]
    if filters:
        known += [Change("above", number, chance.randint(-8, 1))]
        known += [Change("but", "who", chance.choice("abc"))] * ("who" in columns)
    if "who" in columns and "note" not in columns:
        known.append(Change("note", number))
    known.append(Change("choose", value=tuple(chance.sample(columns, len(columns)))))
    return tuple(chance.sample(known, chance.choice((0, 1, 1, 2))))


def _number(columns: tuple[str, ...]) -> str:
    return "n" if "n" in columns else "total"


def _columns(columns: tuple[str, ...], changes: tuple[Change, ...]) -> tuple[str, ...]:
    for each in changes:
        if each.name == "note":
            columns = (*columns, "note")
        elif each.name == "choose":
            columns = each.value
    return columns


def _kept(chance: random.Random, read: Topic, operation: Operation | None) -> tuple[str, tuple[str, ...]]:
    """Return the kind of a node and the key of its rows, one by which they are the same in any order."""
    if operation is not None and operation.name == "window":
        return "view", (*operation.by, "window_start")
    if chance.random() < 0.5:
        return "stream", operation.by if operation and operation.name != "dedup" else chance.choice(
            [(name,) for name in ("who", "id") if name in read.columns]
        )
    if operation is not None and operation.name != "dedup":
        return "view", operation.by
    if _ordered(read):
        return "view", operation.by if operation else (read.key or "who",)
    return "view", ("id", "at")


def _ordered(read: Topic) -> bool:
    """Tell whether rows of one id or of one person, who has ids of his own, come in one order."""
    return "+" not in read.name and (read.key is not None or read.partitions == 1)


# The events


def _actions(chance: random.Random, sources: tuple[Topic, ...]) -> list[Action]:
    actions: list[Action] = []
    events, producers = _arrivals(chance), PRODUCERS[: chance.randint(1, 2)]
    while events:
        count = chance.randint(1, 6)
        rows, events = tuple(events[:count]), events[count:]
        source = chance.choice(sources).name
        actions.append(Action("send", chance.choice(producers), source, rows))
        if chance.random() < 0.3:
            reached = max(row[3] or 0 for row in rows)
            actions.append(Action("advance", chance.choice(producers), to=reached + chance.randint(-10, 20)))
        if chance.random() < 0.4:
            actions += [Action("step")] + [Action("restart")] * (chance.random() < 0.3)
    if chance.random() < 0.75:
        actions += [Action("advance", producer, to=1000) for producer in producers]
    return [*actions, Action("step")]


def _arrivals(chance: random.Random) -> list[tuple[Any, ...]]:
    """Return events in the order in which they arrive, some of them more than once."""
    disorder = chance.choice((10, 40, 150))
    events = [event for number in range(8) for event in _copies(chance, number)]
    return sorted(events, key=lambda event: (event[3] or 0) + chance.uniform(0, disorder))


def _copies(chance: random.Random, number: int) -> list[tuple[Any, ...]]:
    """Return the events of one id, with copies."""
    first, who, copies = chance.randint(0, 12) * 5, chance.choice("abc"), []  # so that times are equal
    for variant in range(chance.choice((1, 1, 2))):
        at = None if chance.random() < 0.05 else first + variant * APART
        event = (number, who, None if chance.random() < 0.1 else chance.randint(-9, 9), at)
        copies += [event] * chance.choice((1, 1, 2, 3))
    return copies


# As PySpark


def built(wanted: Plan) -> Pipeline:
    """Return the pipeline of a plan."""
    pipeline = Pipeline("random")
    for source in wanted.sources:
        lateness = f"{source.lateness} seconds"
        pipeline.source(source.name, SCHEMA, key=source.key, event_time="at", lateness=lateness)
    for node in wanted.nodes:
        extra = {"partitions": node.partitions} if node.kind == "stream" else {}
        getattr(pipeline, node.kind)(key=node.key, **extra)(_function(node))
    return pipeline


def _function(node: Node) -> Callable[..., DataFrame]:
    def made(**frames: DataFrame) -> DataFrame:
        rows = frames[node.reads[0]]
        for other in node.reads[1:]:
            rows = rows.unionByName(frames[other])
        for change in node.before:
            rows = _changed(rows, change)
        if node.operation is not None:
            rows = rows.transform(_door(node.operation))
        for change in node.after:
            rows = _changed(rows, change)
        return rows

    made.__name__ = node.name
    kind = Parameter.KEYWORD_ONLY
    made.__signature__ = Signature([Parameter(name, kind) for name in node.reads])  # type: ignore[attr-defined]
    return made


def _door(operation: Operation) -> Any:
    if operation.name == "dedup":
        return dedup(on=operation.by, within=f"{operation.within} seconds")
    if operation.name == "latest":
        return latest(by=operation.by)
    if operation.name == "window":
        size, value = f"{operation.within} seconds", operation.value
        return windows.tumbling(size, by=operation.by, rows=agg.count(), total=agg.sum(value))
    return scan(fold(operation.value), by=operation.by, schema=STATE)


def _changed(rows: DataFrame, change: Change) -> DataFrame:
    column = F.col(change.column) if change.column else None
    match change.name:
        case "above":
            return rows.filter(column > change.value)
        case "but":
            return rows.filter(column != change.value)
        case "timed":
            return rows.filter(column.isNotNull())
        case "add":
            return rows.withColumn(change.column, column * 2 + change.value)
        case "note":
            return rows.withColumn("note", F.concat("who", F.lit("/"), column.cast("string")))
        case "choose":
            return rows.select(*change.value)
    raise AssertionError(change.name)
