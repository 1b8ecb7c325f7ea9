"""What a random pipeline must come to, computed slowly and obviously, in plain Python.

It knows the rules of ``docs/engine.md`` and of the operators' pages, and no code of the engine. What
is in the log is its history: which rows each topic has, in which step of the harness they came, and
which were judged to be late. Where a micro-batch began and ended within a step is not known, so
lateness is held between two bounds: a row from before the clock at the beginning of its step must be
late, and one that is not from before the clock at the end of it must not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from random_pipelines import Change, Node, Operation, Plan, Row, Topic, fold

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
NEVER = datetime(1900, 1, 1, tzinfo=UTC)
"""The clock of which nothing is known: nothing is before it."""

Frozen = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Record:
    """A row as it lies in a topic."""

    row: Row
    partition: int
    offset: int
    producer: str
    step: int
    """The step of the harness that processed it, from 0."""


@dataclass(frozen=True)
class Mark:
    """A producer's promise, in every partition of a source."""

    source: str
    producer: str
    time: datetime
    step: int


@dataclass(frozen=True)
class History:
    """What has happened."""

    plan: Plan
    records: dict[str, list[Record]]
    """Of each source and stream, partition by partition, each in its order."""
    marks: list[Mark]
    partitions: dict[str, int]
    last: int
    """The last step."""


def frozen(row: Row) -> Frozen:
    """Return a row as something to be counted."""
    return tuple(sorted(row.items()))


def count(rows: Iterable[Row]) -> Counter[Frozen]:
    """Return how often each row is there."""
    return Counter(map(frozen, rows))


# Time


def clock(history: History, node: Node, step: int) -> datetime:
    """Return a node's clock after a step: the smallest of its inputs' clocks."""
    return min(_topic_clock(history, name, step) for name in node.reads)


def _topic_clock(history: History, name: str, step: int) -> datetime:
    for node in history.plan.nodes:
        if node.name == name:
            return clock(history, node, step)
    source = next(each for each in history.plan.sources if each.name == name)
    # It never goes back: a producer that is heard for the first time may claim less.
    return max([NEVER] + [_smallest_claim(history, source, each) for each in range(step + 1)])


def _smallest_claim(history: History, source: Topic, step: int) -> datetime:
    claims: dict[tuple[int, str], datetime] = {}

    def claim(partition: int, producer: str, time: datetime) -> None:
        key = (partition, producer)
        claims[key] = max(claims.get(key, NEVER), time)

    for record in history.records[source.name]:
        if record.step <= step and record.row["at"] is not None:
            early = record.row["at"] - timedelta(seconds=source.lateness)
            claim(record.partition, record.producer, early)
    for mark in history.marks:
        if mark.source == source.name and mark.step <= step:
            for partition in range(history.partitions[source.name]):
                claim(partition, mark.producer, mark.time)
    return min(claims.values(), default=NEVER)


# Rows


def taken(history: History, node: Node) -> list[Record]:
    """Return what goes into a node's operator, or what comes out of a node that has none."""
    return [
        Record(row, each.partition, each.offset, each.producer, each.step)
        for name in node.reads
        for each in history.records[name]
        for row in changed([each.row], node.before)
    ]


def changed(rows: Iterable[Row], changes: Sequence[Change]) -> list[Row]:
    """Return rows after what is done to each of them by itself."""
    rows = list(rows)
    for change in changes:
        rows = [made for row in rows for made in _changed(row, change)]
    return rows


def _changed(row: Row, change: Change) -> list[Row]:
    value = row.get(change.column)
    if change.name == "above":
        return [row] if value is not None and value > change.value else []
    if change.name == "but":
        return [row] if value != change.value else []
    if change.name == "timed":
        return [row] if value is not None else []
    if change.name == "add":
        return [{**row, change.column: None if value is None else value * 2 + change.value}]
    if change.name == "note":
        return [{**row, "note": None if value is None else f"{row['who']}/{value}"}]
    assert change.name == "choose"
    return [{name: row[name] for name in change.value}]


def judged(late: Sequence[Row]) -> list[Row]:
    """Return late rows as they went in."""
    return [{name: row[name] for name in row if not name.startswith("late_")} for row in late]


def check_late(history: History, node: Node, late: Sequence[Row]) -> None:
    """Check that rows were judged late where they had to be, and only where they may be."""
    must, may = [], []
    for record in taken(history, node):
        first = clock(history, node, record.step - 1) if record.step else NEVER
        if _is_late(node.operation, record.row["at"], first):
            must.append(record.row)
        if _is_late(node.operation, record.row["at"], clock(history, node, record.step)):
            may.append(record.row)
    assert not count(must) - count(late), f"{node.name}: not judged late: {count(must) - count(late)}"
    assert not count(late) - count(may), f"{node.name}: judged late: {count(late) - count(may)}"


def _is_late(operation: Operation | None, at: datetime | None, time: datetime) -> bool:
    if operation is None:
        return False
    if at is None:
        return True
    if operation.name == "latest":
        return False
    if operation.name == "window":
        return _window_end(at, operation) <= time
    if operation.name == "dedup" and time != NEVER:
        return at < time - timedelta(seconds=operation.within)
    return at < time


def expected(history: History, node: Node, late: Sequence[Row]) -> list[Row]:
    """Return the rows that a node has emitted, in an order in which they may come."""
    rows = [record.row for record in taken(history, node)]
    for row in late:  # of equal rows the last: once time has passed one, it has passed those that follow
        del rows[len(rows) - 1 - rows[::-1].index(row)]
    return changed(_operated(rows, node.operation, clock(history, node, history.last)), node.after)


def _operated(rows: list[Row], operation: Operation | None, now: datetime) -> list[Row]:
    if operation is None:
        return rows
    if operation.name == "dedup":
        return _deduplicated(rows, operation)
    if operation.name == "latest":
        return _newest(rows, operation)
    if operation.name == "window":
        return _windowed([row for row in rows if _window_end(row["at"], operation) <= now], operation)
    return _folded([row for row in rows if row["at"] < now], operation)


def _window_end(at: datetime, operation: Operation) -> datetime:
    size = timedelta(seconds=operation.within)
    return at - (at - START) % size + size


def _windowed(rows: list[Row], operation: Operation) -> list[Row]:
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault((_key(row, operation.by), _window_end(row["at"], operation)), []).append(row)
    return [_window(key, end, group, operation) for (key, end), group in groups.items()]


def _window(key: tuple[Any, ...], end: datetime, rows: list[Row], operation: Operation) -> Row:
    values = [row[operation.value] for row in rows if row[operation.value] is not None]
    return {
        **dict(zip(operation.by, key, strict=True)),
        "window_start": end - timedelta(seconds=operation.within),
        "window_end": end,
        "rows": len(rows),
        "total": sum(values) if values else None,
        "revision": 0,
        "complete": True,
    }


def _deduplicated(rows: list[Row], operation: Operation) -> list[Row]:
    passed: list[Row] = []
    for row in rows:
        near = [
            other
            for other in passed
            if _key(other, operation.by) == _key(row, operation.by)
            and abs(other["at"] - row["at"]) < timedelta(seconds=operation.within)
        ]
        if not near:
            passed.append(row)
    return passed


def _newest(rows: list[Row], operation: Operation) -> list[Row]:
    newest: dict[Any, Row] = {}
    for row in sorted(rows, key=_place):
        newest[_key(row, operation.by)] = row
    return list(newest.values())


def _folded(rows: list[Row], operation: Operation) -> list[Row]:
    step, states, out = fold(operation.value), {}, []
    for row in sorted(rows, key=_place):
        key = _key(row, operation.by)
        states[key] = step(states.get(key), row)
        out.append({**{name: row[name] for name in operation.by}, "at": row["at"], **states[key]})
    return out


def _place(row: Row) -> tuple[Any, ...]:
    """Return where a row stands among others: by time, then by its columns, nulls first."""
    return row["at"], *((value is not None, value if value is not None else 0) for value in row.values())


def _key(row: Row, names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


# Results


def check_view(history: History, node: Node, late: Sequence[Row], stored: Sequence[Row]) -> None:
    """Check that a view has, of each key, the last row."""
    last = {_key(row, node.key): row for row in expected(history, node, late)}
    _same(node, last.values(), stored)


def check_stream(history: History, node: Node, late: Sequence[Row], stored: Sequence[Row]) -> None:
    """Check that a stream has every row once; of ``latest``, that it ends with the newest of each key."""
    right = expected(history, node, late)
    if node.operation is None or node.operation.name != "latest":
        return _same(node, right, stored)
    possible = changed([record.row for record in taken(history, node)], node.after)
    assert not count(stored) - count(possible), f"{node.name}: {count(stored) - count(possible)}"
    by = node.operation.by
    for key in {_key(row, by) for row in stored}:
        times = [row["at"] for row in stored if _key(row, by) == key]
        assert times == sorted(times), f"{node.name}: {key} goes back in time"
    return _same(node, right, {_key(row, by): row for row in stored}.values())


def _same(node: Node, right: Iterable[Row], stored: Iterable[Row]) -> None:
    right, stored = count(right), count(stored)
    assert right == stored, f"{node.name}: missing {right - stored}, too much {stored - right}"
