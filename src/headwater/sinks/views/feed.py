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
Row = dict[str, Any]
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
        raise _rebuilt(entry, since)
    last = sequence(db, entry)
    oldest = db.execute(f"SELECT min(number) FROM {entry.tables.changes}").fetchone()[0]  # noqa: S608
    check_kept(entry.name, since, last + 1 if oldest is None else int(oldest), last)
    return since


def check_kept(view: str, since: int, earliest: int, last: int) -> None:
    """Refuse to go on after a change whose successors are no longer kept, or that has not happened."""
    if since > last:
        raise UsageError(f'view "{view}" has no change {since} yet', detail=f"the newest one is {last}")
    missed = earliest - 1 - since
    if missed > 0:
        raise OffsetLost(
            f'{missed:,} changes of view "{view}" after number {since} are no longer kept',
            detail=f"the oldest one that is kept has number {earliest}",
            hint=_HOW_TO_GO_ON,
            missed=missed,
            earliest=earliest,
        )


def _rebuilt(entry: Entry, since: int) -> OffsetLost:
    return OffsetLost(
        f'view "{entry.name}" has been rebuilt since change {since}',
        detail=f"version {entry.version} is published now, with changes of its own",
        hint=_HOW_TO_GO_ON,
        missed=0,
        earliest=entry.first + 1,
    )


_HOW_TO_GO_ON = "take view.sequence(), then read the rows with scan(), then go on with changes(since=…)"


def _decoded(rows: Sequence[Sequence[Any]], tables: Tables) -> list[Change]:
    numbers, batches, kinds, *columns = zip(*rows, strict=True)
    width = len(tables.keyed.key)
    end = len(tables.fields)  # where the old values end and the new ones begin
    keys = columns[:width]
    old, new = _rows(columns[:end], tables), _rows(keys + columns[end:], tables)
    return [
        change(number, kind, batch, before, after, tables.keyed.key)
        for number, kind, batch, before, after in zip(numbers, kinds, batches, old, new, strict=True)
    ]


def change(number: int, kind: int, batch: int, old: Row, new: Row, key: tuple[str, ...]) -> Change:
    """Return a change; of an insert the old row does not count, of a delete the new one."""
    there = new if kind == INSERT else old
    return Change(
        number,
        _KINDS[kind],
        tuple(there[name] for name in key),
        None if kind == INSERT else old,
        None if kind == DELETE else new,
        batch,
    )


def _rows(columns: Sequence[Sequence[Any]], tables: Tables) -> list[Row]:
    """Return rows as mappings, their columns in the schema's order."""
    made = dict(zip((field.name for field in tables.fields), columns, strict=True))
    schema = pa.schema([field.with_nullable(True) for field in tables.keyed.schema])
    arrays = [values.decode(made[field.name], field) for field in schema]
    listed: list[Row] = pa.RecordBatch.from_arrays(arrays, schema=schema).to_pylist()
    return listed
