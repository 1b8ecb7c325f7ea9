"""Columns guessed from JSON values: the narrowest type that holds every value that was seen.

It is a guess for people to correct, from a sample. Invariant: a declaration of these columns reads every
value of the sample.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from headwater.schema import TIMESTAMP
from headwater.values import jsonl_columns
from headwater.values.columns import REFUSALS, Misfit

VARIANT = "VARIANT"
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_MOST_FIELDS = 100
_DEEPEST = 8


@dataclass
class GuessedColumn:
    """A column, with the values it was guessed from."""

    name: str
    type: str
    """In Spark DDL."""
    values: list[Any] = field(default_factory=list)

    @property
    def ddl(self) -> str:
        """As a schema has it."""
        return f"{quoted(self.name)} {self.type}"


def quoted(name: str) -> str:
    """Return a column's name as DDL has it."""
    return name if _NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def columns_of(objects: Sequence[dict[str, Any]]) -> list[GuessedColumn]:
    """Return a column for each member of objects, in the order in which they come."""
    found: dict[str, list[Any]] = {}
    for each in objects:
        for name, value in each.items():
            found.setdefault(name, []).append(value)
    return [GuessedColumn(name, type_of(values), values) for name, values in found.items()]


def type_of(values: Sequence[Any]) -> str:
    """Return the type of a column that holds these values.

    >>> type_of([1, None]), type_of([1, 2.5]), type_of(["2026-01-02T03:04:05Z"]), type_of([[1], [2]])
    ('BIGINT', 'DOUBLE', 'TIMESTAMP', 'ARRAY<BIGINT>')
    """
    guess = _nested([value for value in values if value is not None], 0)
    return VARIANT if guess is None else guess


def _nested(values: Sequence[Any], depth: int) -> str | None:
    """Return a type, None where only free JSON holds the values: it cannot be inside of another type."""
    kinds = set(map(type, values))
    if not kinds or depth > _DEEPEST:
        return "STRING" if not kinds and depth == 0 else None
    if kinds == {dict}:
        return _struct(values, depth)
    if kinds == {list}:
        inner = _nested([item for each in values for item in each if item is not None], depth + 1)
        return None if inner is None else f"ARRAY<{inner}>"
    return _simple(list(values), kinds)


def _struct(values: Sequence[dict[str, Any]], depth: int) -> str | None:
    names = list(dict.fromkeys(name for each in values for name in each))
    if (
        not 0 < len(names) <= _MOST_FIELDS
        or len({name.lower() for name in names}) < len(names)
        or "" in names
    ):
        return None
    fields = []
    for name in names:
        inner = _nested([each[name] for each in values if each.get(name) is not None], depth + 1)
        if inner is None:
            return None
        fields.append(f"{quoted(name)}: {inner}")
    return f"STRUCT<{', '.join(fields)}>"


def _simple(values: list[Any], kinds: set[type]) -> str | None:
    if kinds == {str}:
        return _text(values)
    for name, kind, known in _NUMBERS:
        if kinds <= set(known) and known[0] in kinds and _fits(values, kind):
            return name
    return None


def _text(values: list[str]) -> str:
    if all(map(_TIME.match, values)) and _fits(values, TIMESTAMP):
        return "TIMESTAMP"
    return "DATE" if all(map(_DAY.fullmatch, values)) and _fits(values, pa.date32()) else "STRING"


def _fits(values: list[Any], kind: pa.DataType) -> bool:
    try:
        jsonl_columns.column(values, kind)
    except (Misfit, *REFUSALS):
        return False
    return True


_NUMBERS: tuple[tuple[str, pa.DataType, tuple[type, ...]], ...] = (
    ("BOOLEAN", pa.bool_(), (bool,)),
    ("BIGINT", pa.int64(), (int,)),
    ("DOUBLE", pa.float64(), (float, int)),
)
"""Types, with the Python types that they hold; of the first there must be some."""
