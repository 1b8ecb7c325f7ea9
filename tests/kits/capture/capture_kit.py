"""What the tests of captured databases share: reading to the end, and changes one by one."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headwater.capture.change import OPERATIONS, Delivery, TableChanges, Truncation
from headwater.capture.source import CaptureSource

PATIENCE = 30.0


@dataclass(frozen=True)
class Single:
    """One change of one row, or a truncation."""

    table: str
    operation: str
    transaction: str
    index: int
    row: dict[str, Any] | None = None
    before: dict[str, Any] | None = None


def deliveries(source: CaptureSource, until: str | None = None) -> list[Delivery]:
    """Read up to a position: where the database is now."""
    end, found = until or source.end(), []
    deadline = time.monotonic() + PATIENCE
    position = None
    while position is None or not source.passed(position, end):
        assert time.monotonic() < deadline, f"{end} did not come, only {position}"
        found.append(source.read(1.0))
        position = found[-1].position or position
    return found


def last_position(found: list[Delivery]) -> str:
    return next(each.position for each in reversed(found) if each.position is not None)


def tables_changes(found: list[Delivery]) -> list[TableChanges]:
    return [each for delivery in found for each in delivery.changes if isinstance(each, TableChanges)]


def singles(found: list[Delivery]) -> list[Single]:
    """Return the changes of deliveries one by one, in their order."""
    numbered = []
    for delivery_number, delivery in enumerate(found):
        for part, changes in enumerate(delivery.changes):
            numbered += [((delivery_number, *place, part), single) for place, single in _singles(changes)]
    return [single for _, single in sorted(numbered, key=lambda pair: pair[0])]


def _singles(changes: TableChanges | Truncation) -> list[tuple[tuple[int, ...], Single]]:
    ids, name = changes.transactions.id, changes.table.name
    if isinstance(changes, Truncation):
        single = Single(name, "truncate", ids[changes.transaction], changes.index)
        return [((changes.transaction, changes.index, 0), single)]
    rows = changes.rows.to_pylist()
    before = changes.before.to_pylist() if changes.before is not None else [None] * len(rows)
    found = []
    for number, row in enumerate(rows):
        at, index = int(changes.transaction[number]), int(changes.index[number])
        old = (
            before[number] if before[number] and any(v is not None for v in before[number].values()) else None
        )
        kind = OPERATIONS[int(changes.operation[number])]
        found.append(((at, index, number), Single(name, kind, ids[at], index, row, old)))
    return found


def followed(
    found: list[Delivery],
    key: Callable[[dict[str, Any]], Any],
    known: dict[Any, dict[str, Any]] | None = None,
) -> dict[Any, dict[str, Any]]:
    """Return the table that one has who has followed the changes of one, from what is known of it on."""
    rows = dict(known or {})
    for single in singles(found):
        if single.operation == "truncate":
            rows.clear()
        elif single.row is not None and single.operation == "delete":
            rows.pop(key(single.row), None)
        elif single.row is not None:
            rows[key(single.row)] = single.row
    return rows
