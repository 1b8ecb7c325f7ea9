"""The changes of a view as they are printed: flat in tables, old and new row side by side in JSON.

Invariant: of every change that is printed, the one before it was printed too, unless it is no longer kept.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import orjson
import pyarrow as pa

from headwater import Change, Topic, View
from headwater.cli.failure import say
from headwater.cli.formats.writers import BLOCK, row_writer
from headwater.errors import OffsetLost
from headwater.values import jsonl

Block = Sequence[Change]
_ABOUT = [pa.field("_sequence", pa.int64()), pa.field("_change", pa.string())]


def blocks(view: View, since: int, follow: bool) -> Iterator[Block]:
    """Yield the changes after a number, many at once where many are there."""
    while True:
        changes = view.changes(since)
        while block := list(islice(changes, BLOCK)):
            yield block
            since = block[-1].sequence
        if not follow:
            return
        next(view.changes(since, follow=True), None)  # waits; it is read again with what came with it


def before_oldest(view: View) -> int:
    """Return the number before the oldest change that is kept."""
    try:
        next(view.changes(0), None)
    except OffsetLost as lost:
        say("note", f"{lost.missed:,} older changes are no longer retained")
        return lost.earliest - 1
    return 0


def change_writer(form: str, schema: pa.Schema) -> Callable[[Block], None]:
    """Return what prints blocks of changes to stdout."""
    schema = pa.schema([field.with_nullable(True) for field in schema])
    if form == "ndjson":
        return _ndjson(Topic("view", (schema,)))
    flat = pa.schema([*_ABOUT, *schema])
    write = row_writer(form, flat)
    return lambda block: write(pa.RecordBatch.from_pylist(list(map(_flat, block)), schema=flat))


def _flat(change: Change) -> dict[str, object]:
    row = change.old if change.new is None else change.new
    return {"_sequence": change.sequence, "_change": change.kind, **(row or {})}


def _ndjson(topic: Topic) -> Callable[[Block], None]:
    def write(block: Block) -> None:
        old, new = (_encoded([getattr(change, side) for change in block], topic) for side in ("old", "new"))
        for change, before, after in zip(block, old, new, strict=True):
            sys.stdout.buffer.write(_line(change, before, after))
        sys.stdout.buffer.flush()

    return write


def _encoded(rows: Sequence[dict[str, object] | None], topic: Topic) -> list[bytes | None]:
    """Return rows as JSON, and none where there is no row."""
    batch = pa.RecordBatch.from_pylist([row or {} for row in rows], schema=topic.schema)
    lines = jsonl.encode(batch, topic)
    return [None if row is None else line for row, line in zip(rows, lines, strict=True)]


def _line(change: Change, old: bytes | None, new: bytes | None) -> bytes:
    about = {"sequence": change.sequence, "change": change.kind, "batch": change.batch}
    sides = {"old": old, "new": new}
    fields = {**about, **{side: orjson.Fragment(row) for side, row in sides.items() if row is not None}}
    return orjson.dumps(fields) + b"\n"
