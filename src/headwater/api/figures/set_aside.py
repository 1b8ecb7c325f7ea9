"""The newest rows that a node has set aside: those that came too late, and those on which its code fails.

Invariant: no more is read than is returned, however much was set aside.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from headwater.errors import UnknownTopic
from headwater.log import Log, PartitionInfo
from headwater.pipeline.node import Node
from headwater.pipeline.pipeline import Pipeline
from headwater.record import META
from headwater.values.json_ready import JsonReady, json_ready

MOST = 1_000


@dataclass(frozen=True)
class SetAside(JsonReady):
    """Rows that were set aside: how many there are, and the newest of them, the newest first."""

    records: tuple[dict[str, Any], ...] = ()
    count: int = 0


def late_rows(log: Log, pipeline: Pipeline, node: Node, limit: int = 50) -> SetAside:
    """Return the newest rows that came too late for a node, each with its place and when it was received."""
    return _newest(log, f"{pipeline.name}.{node.name}.late", limit, _late_row)


def dead_rows(log: Log, pipeline: Pipeline, node: Node, limit: int = 50) -> SetAside:
    """Return the newest records on which the code of a node fails: where they came from, and the error."""
    return _newest(log, f"{pipeline.name}.{node.name}.dead", limit, _dead_row)


def _newest(log: Log, topic: str, limit: int, shown: Callable[[dict[str, Any]], dict[str, Any]]) -> SetAside:
    try:
        info = log.describe(topic)
    except UnknownTopic:  # it is made with its first row
        return SetAside()
    limit = min(limit, MOST)
    rows = [row for partition in info.partitions for row in _rows(log, topic, partition, limit)]
    rows.sort(key=lambda row: (row["_received"], row["_offset"]), reverse=True)
    return SetAside(tuple(json_ready(shown(row)) for row in rows[:limit]), info.records)


def _rows(log: Log, topic: str, partition: PartitionInfo, limit: int) -> Iterator[dict[str, Any]]:
    start = max(partition.earliest, partition.end - limit)
    for batch in log.read(topic, partition.partition, start, partition.end, meta=True):
        yield from batch.to_pylist()


def _late_row(row: dict[str, Any]) -> dict[str, Any]:
    place = {name: row[f"_{name}"] for name in ("partition", "offset", "received")}
    return {**place, "value": _value(row)}


def _dead_row(row: dict[str, Any]) -> dict[str, Any]:
    letter = _value(row)
    try:
        return {**letter, "record": None if letter["record"] is None else json.loads(letter["record"])}
    except ValueError:  # as it is, then
        return letter


def _value(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in META}
