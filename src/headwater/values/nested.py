"""What is inside columns, however deep.

Invariant: after ``check_within`` nested values keep NOT NULL and the keys of maps apart, and every time
can be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import RowError, nearest
from headwater.topic import Topic
from headwater.values import years

_t = pa.types


def check_within(column: pa.Array, field: pa.Field, topic: Topic) -> None:
    """Refuse a null in a NOT NULL field of a struct, a map that has a key twice, and a time in no year."""
    for problem, row in _problems(column, field.type, field.name, np.arange(len(column))):
        raise RowError(f'row does not fit topic "{topic.name}": {problem}', row=int(row))


def compact(column: pa.Array) -> pa.Array:
    """Return a list or map whose children hold its own values only, from offset 0 on."""
    return column.take(pa.array(np.arange(len(column))))


def _problems(column: pa.Array, kind: pa.DataType, path: str, rows: Any) -> Iterator[tuple[str, int]]:
    """Yield what is wrong inside a nested column; ``rows`` has the row of each of its values."""
    if _t.is_struct(kind) and _holds_strict(kind):
        there = column.is_valid()
        for field, part in zip(kind, column.flatten(), strict=True):
            inner = f"{path}.{field.name}"
            if not field.nullable and part.null_count:
                missing = pc.index(pc.and_(there, part.is_null()), True).as_py()
                if missing >= 0:
                    yield f'field "{inner}" is NOT NULL and has no value', rows[missing]
            yield from _problems(part, field.type, inner, rows)
    elif _t.is_list(kind) and _holds_strict(kind):
        yield from _problems(column.flatten(), kind.value_type, path, rows[_parents(column)])
    elif _t.is_map(kind):
        column = compact(column) if column.offset or column.null_count else column
        at = column.offsets.to_numpy()
        keys, items = column.keys.slice(at[0], at[-1] - at[0]), column.items.slice(at[0], at[-1] - at[0])
        rows = np.repeat(rows, np.diff(at))
        twice = None if _t.is_nested(kind.key_type) else _first_repeated(keys, np.diff(at))
        if twice is not None:
            yield f'map "{path}" has the key {keys[twice].as_py()!r:.60} twice', rows[twice]
        yield from _problems(keys, kind.key_type, path, rows)
        yield from _problems(items, kind.item_type, path, rows)
    elif (wrong := years.outside(column)) is not None:
        yield f'column "{path}" has a time that cannot be read, {years.REASON}', rows[wrong]


def _parents(column: pa.Array) -> Any:
    return pc.list_parent_indices(column).to_numpy(zero_copy_only=False)


def _first_repeated(keys: pa.Array, sizes: Any) -> int | None:
    """Return the place of a key that its map has had before."""
    if not len(keys) or sizes.max() < 2:
        return None
    code = keys.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    marks = np.repeat(np.arange(len(sizes)), sizes) * (int(code.max()) + 1) + code
    first = np.unique(marks, return_index=True)[1]
    if len(first) == len(marks):
        return None
    return int(np.setdiff1d(np.arange(len(marks)), first, assume_unique=True)[0])


def _holds_strict(kind: pa.DataType) -> bool:
    """Tell whether a type has something inside that ``check_within`` has to look at."""
    if _t.is_struct(kind):
        return any(not field.nullable or _holds_strict(field.type) for field in kind)
    return bool(
        _t.is_map(kind) or _t.is_temporal(kind) or (_t.is_list(kind) and _holds_strict(kind.value_type))
    )


def unknown_field(path: str, name: str, kind: pa.DataType, topic: Topic, row: int | None = None) -> RowError:
    """Return the error for a field that a struct of the topic has not."""
    known = [field.name for field in kind]
    hint = nearest(name, known) or f'fields of "{path}": ' + ", ".join(known)
    return RowError(f'topic "{topic.name}" has no field "{path}.{name}"', hint=hint, row=row)
