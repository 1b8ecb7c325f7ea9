"""The changes of a view: which rows each batch inserted, updated or deleted, in order.

Changes are numbered, and at least the newest ones are kept. Invariant: a reader gets every change
after the one it names, each once and in order, or an error that says how many are gone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from headwater.errors import OffsetLost, UsageError
from headwater.sinks.views import catalog, values
from headwater.sinks.views.catalog import FIRST, Entry
from headwater.sinks.views.connection import Readers, still
from headwater.sinks.views.tables import DELETE, INSERT, Tables, last_change
from headwater.sinks.views.wait import looks

Kind = Literal["insert", "update", "delete"]
_KINDS: tuple[Kind, ...] = ("insert", "update", "delete")
_CHUNK = 1_000


@dataclass(frozen=True)
class Change:
    """One row of a view that a batch has changed."""

    sequence: int
    """Grows from change to change; what to name to go on after this one."""
    kind: Kind
    key: tuple[Any, ...]
    old: dict[str, Any] | None
    """The row before, None for an insert."""
    new: dict[str, Any] | None
    """The row after, None for a delete."""
    batch: int


def changes(
    readers: Readers, view: tuple[str, int | None], since: int, follow: bool, timeout: float | None
) -> Iterator[Change]:
    """Yield the changes after ``since``; with ``follow`` wait for more, each time up to ``timeout``."""
    with readers.lend() as db:
        while True:
            while chunk := _chunk(db, view, since):
                yield from chunk
                since = chunk[-1].sequence
            if not follow or not any(_more(db, view, since) for _ in looks(db, timeout)):
                return


def sequence(db: sqlite3.Connection, entry: Entry) -> int:
    """Return the number of the newest change."""
    return last_change(db, entry.tables)


def _more(db: sqlite3.Connection, view: tuple[str, int | None], since: int) -> bool:
    with still(db):
        entry = catalog.find(db, *view)
        return sequence(db, entry) != (since or entry.first)


def _chunk(db: sqlite3.Connection, view: tuple[str, int | None], since: int) -> Sequence[Change]:
    with still(db):
        entry = catalog.find(db, *view)
        since = _checked(db, entry, since)
        columns = ", ".join(entry.tables.change_columns)
        rows = db.execute(
            f"SELECT number, batch, kind, {columns} FROM {entry.tables.changes} "  # noqa: S608
            "WHERE number > ? ORDER BY number LIMIT ?",
            (since, _CHUNK),
        ).fetchall()
    return _decoded(rows, entry.tables) if rows else ()


def _checked(db: sqlite3.Connection, entry: Entry, since: int) -> int:
    """Return where to go on; refuse a number whose successors are gone, or were never there."""
    since = since or entry.first
    if since >> FIRST != entry.first >> FIRST:
        raise OffsetLost(
            f'view "{entry.name}" has been rebuilt since change {since}',
            detail=f"version {entry.version} is published now, with changes of its own",
            hint=_HOW_TO_GO_ON,
            missed=0,
            earliest=entry.first + 1,
        )
    last = sequence(db, entry)
    if since > last:
        raise UsageError(f'view "{entry.name}" has no change {since} yet', detail=f"the newest one is {last}")
    oldest = db.execute(f"SELECT min(number) FROM {entry.tables.changes}").fetchone()[0]  # noqa: S608
    earliest = last + 1 if oldest is None else int(oldest)
    if since + 1 < earliest:
        missed = earliest - 1 - since
        raise OffsetLost(
            f'{missed:,} changes of view "{entry.name}" after number {since} are no longer kept',
            detail=f"the oldest one that is kept has number {earliest}",
            hint=_HOW_TO_GO_ON,
            missed=missed,
            earliest=earliest,
        )
    return since


_HOW_TO_GO_ON = "take view.sequence(), then read the rows with scan(), then go on with changes(since=…)"


def _decoded(rows: Sequence[Sequence[Any]], tables: Tables) -> list[Change]:
    columns = list(zip(*rows, strict=True))
    width = len(tables.keyed.key)
    rest = len(tables.fields) - width
    number, batch, kind = columns[:3]
    keys, olds, news = (
        columns[3 : 3 + width],
        columns[3 + width : 3 + width + rest],
        columns[3 + width + rest :],
    )
    old, new = _rows(keys + olds, tables), _rows(keys + news, tables)
    return [
        Change(
            number[at],
            _KINDS[kind[at]],
            tuple(old[at][name] for name in tables.keyed.key),
            None if kind[at] == INSERT else old[at],
            None if kind[at] == DELETE else new[at],
            batch[at],
        )
        for at in range(len(rows))
    ]


def _rows(columns: Sequence[Sequence[Any]], tables: Tables) -> list[dict[str, Any]]:
    """Return rows as mappings, their columns in the schema's order."""
    made = dict(zip((field.name for field in tables.fields), columns, strict=True))
    schema = pa.schema([field.with_nullable(True) for field in tables.keyed.schema])
    arrays = [values.decode(made[field.name], field) for field in schema]
    listed: list[dict[str, Any]] = pa.RecordBatch.from_arrays(arrays, schema=schema).to_pylist()
    return listed
