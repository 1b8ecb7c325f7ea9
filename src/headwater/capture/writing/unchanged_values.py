"""Values that a database has not sent again, filled in from the row as it was last known.

Invariant: a value is that of the row before the change: what was yielded before is known when the next is
filled in. A row that a snapshot is still to read is left to it. What the topic has from before a restart is
not filled in once more: the row before it may be gone by now, or a later one stand there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.capture.change import DELETE, INSERT, Flags, TableChanges
from headwater.capture.writing.captured_table import CapturedTable

Known = Callable[[set[bytes]], Mapping[bytes, Mapping[str, Any]]]
"""Returns the last rows of some keys, of those that have one."""


@dataclass(frozen=True)
class LeftOut:
    """Changes that are not written: a row that is still to be read, or what was written before."""

    changes: TableChanges

    @property
    def is_moved(self) -> bool:
        """Whether the row has got another key, which a snapshot may have passed."""
        return bool((self.changes.operation == INSERT).any())  # a row that is new has all its values


def filled(
    changes: TableChanges, captured: CapturedTable, known: Known, snapshot: bool, stored: int = 0
) -> Iterator[TableChanges | LeftOut]:
    """Yield changes with the values that they lack, or those that are left out.

    While a ``snapshot`` goes on, a row that is not known is left out: it is still to be read. So are rows
    that lack values among the first ``stored``, which the topic has passed: they were filled in then.
    """
    unchanged = {name for name, rows in changes.unchanged.items() if rows.any()}
    missing = [name for name in captured.schema.names if name in unchanged]
    if not missing:
        yield changes
        return
    needed = np.logical_or.reduce([changes.unchanged[name] for name in missing])
    keys = captured.key_names(changes.rows).to_pylist()
    befores = _befores(changes, keys)
    yield from _stored_parts(changes.part(0, stored), needed[:stored])
    parts = _parts(needed[stored:].tolist(), keys[stored:], befores[stored:])
    for start, end in ((stored + start, stored + end) for start, end in parts):
        part, asked = changes.part(start, end), needed[start:end]
        rows = known({befores[start + row] for row in np.flatnonzero(asked).tolist()})
        found = [
            rows.get(before) if need else {} for before, need in zip(befores[start:end], asked, strict=True)
        ]
        yield from _known_parts(part, missing, found, snapshot)


def _befores(changes: TableChanges, keys: Sequence[bytes]) -> list[bytes]:
    """Return under which key each row was known before: an update of the key has just deleted it there."""
    is_moved = moved(changes)
    return [keys[row - 1] if is_moved[row] else keys[row] for row in range(len(changes))]


def moved(changes: TableChanges) -> Flags:
    """Tell which rows have got another key: the deletion under the old one is just before."""
    operation, index, transaction = changes.operation, changes.index, changes.transaction
    is_moved = np.zeros(len(changes), bool)
    is_moved[1:] = (
        (operation[:-1] == DELETE)
        & (operation[1:] == INSERT)
        & (index[1:] == index[:-1])
        & (transaction[1:] == transaction[:-1])
    )
    return is_moved


def _stored_parts(part: TableChanges, needed: Flags) -> Iterator[TableChanges | LeftOut]:
    """Yield what the topic has passed, but for the rows that lack values."""
    bounds = [0, *(np.flatnonzero(np.diff(needed)) + 1).tolist(), len(part)] if len(part) else []
    for start, end in pairwise(bounds):
        some = part.part(start, end)
        yield LeftOut(some) if needed[start] else replace(some, unchanged={})


def _parts(
    needed: Sequence[bool], keys: Sequence[bytes], befores: Sequence[bytes]
) -> Iterator[tuple[int, int]]:
    """Yield parts in which no row is needed that the part itself has changed.

    Row by row: few changes leave large values out, and those before them decide where a part ends.
    """
    start, changed = 0, set[bytes]()
    for row, key in enumerate(keys):
        if needed[row] and befores[row] in changed:
            first = row - 1 if befores[row] != key else row  # with the deletion under the old key
            if first > start:
                yield start, first
            start, changed = first, set(keys[first:row])
        changed.add(key)
    if start < len(keys):
        yield start, len(keys)


def _known_parts(
    part: TableChanges, missing: Sequence[str], found: Sequence[Mapping[str, Any] | None], snapshot: bool
) -> Iterator[TableChanges | LeftOut]:
    """Yield a part with its values; where a row is not known, a snapshot has it, or nobody."""
    unknown = [row for row, values in enumerate(found) if values is None]
    if not snapshot:
        lost = dict.fromkeys(unknown, "a value was not sent, and its last one is not known")
        yield _with_values(replace(part, unfit={**part.unfit, **lost}), missing, found)
        return
    start = 0
    for row in [*unknown, len(part)]:
        if row > start:
            yield _with_values(part.part(start, row), missing, found[start:row])
        if row < len(part):
            yield LeftOut(part.part(row, row + 1))
        start = row + 1


def _with_values(
    part: TableChanges, missing: Sequence[str], found: Sequence[Mapping[str, Any] | None]
) -> TableChanges:
    rows = part.rows
    for name in missing:
        mask = part.unchanged[name]
        field = rows.schema.field(name)
        values = [(found[row] or {}).get(name) for row in np.flatnonzero(mask).tolist()]
        column = pc.replace_with_mask(rows.column(name), pa.array(mask), pa.array(values, field.type))
        rows = rows.set_column(rows.schema.get_field_index(name), field, column)
    return replace(part, rows=rows, unchanged={}, filled=True)
