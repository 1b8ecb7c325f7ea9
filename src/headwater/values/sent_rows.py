"""Rows as ``send`` was given them: copied there and then, so that a caller may use a dict again.

The values of rows wait side by side in one list, from which columns are slices: the cheapest copy there
is, and the one that is converted fastest. What is nested, free JSON or binary is copied all the way down.
The values of all other columns need no copy: of those that are taken (``python_values``) none can change.
Invariant: nothing that a caller does to a row after ``send`` has returned is seen by the log.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from datetime import datetime
from operator import itemgetter
from typing import Any, NamedTuple

import pyarrow as pa

from headwater.errors import RowError, UsageError
from headwater.record import Headers
from headwater.schema import is_variant
from headwater.topic import Topic

Row = Mapping[str, Any]
_FIXED = frozenset((type(None), bool, int, float, str, bytes, datetime))


class Marked(NamedTuple):
    """A row that carries more than its columns."""

    row: Row
    deleted: bool = False
    headers: Headers | None = None
    occurred: datetime | None = None
    sent: datetime | None = None
    sequence: int | None = None


class Copier:
    """Copies rows of one topic into places of a list, ``width`` for each row."""

    def __init__(self, topic: Topic):
        names = topic.schema.names
        self._topic = topic
        self._names = names
        self._deep = frozenset(field.name for field in topic.schema if _may_change(field))
        self.width = 1 if self._deep else len(names)
        self.columns = -1 if self._deep else len(names)
        """How many columns a row has that ``values`` takes; none has -1."""
        self.values: Callable[[Row], tuple[Any, ...]] = _taker(names)
        """Returns the values of a row that has every column, or raises ``KeyError``."""

    def odd(self, row: Any) -> tuple[Any, ...]:
        """Return the places of any other row."""
        if self._deep:
            return (row if type(row) is Marked else self.copy(row),)
        made = row if type(row) is Marked else Marked(self.copy(row))
        return (made, *[None] * (self.width - 1))

    def copy(self, row: Any) -> Any:
        """Return any row such that it cannot change."""
        try:
            if not isinstance(row, Mapping) or self._topic.free:
                return frozen(row)
            deep = self._deep
            return {name: frozen(value) if name in deep else value for name, value in dict(row).items()}
        except Exception as error:  # whatever a row is, only that row is refused
            raise _uncopied(self._topic, error) from None

    def by_column(self, cells: list[Any]) -> list[list[Any]] | None:
        """Return the values of each column, where the topic has rows that ``values`` takes."""
        return None if self._deep else [cells[at :: self.width] for at in range(self.width)]

    def by_row(self, cells: list[Any]) -> list[Any]:
        """Return each row as a mapping, or what else was sent, or ``Marked``."""
        if self._deep:
            return cells
        rows = zip(*[iter(cells)] * self.width, strict=True)
        return [
            row[0] if type(row[0]) is Marked else dict(zip(self._names, row, strict=True)) for row in rows
        ]


def frozen(value: Any) -> Any:
    """Return a value that shares nothing with the one given that could change."""
    kind = type(value)
    if kind in _FIXED:
        return value
    if kind is dict:
        return {frozen(name): frozen(item) for name, item in value.items()}
    if kind is list:
        return [frozen(item) for item in value]
    if kind is tuple:
        return tuple(frozen(item) for item in value)
    return bytes(value) if kind is memoryview else copy.deepcopy(value)


def marked(
    row: Row,
    headers: Headers | None,
    occurred: datetime | None,
    sent: datetime | None,
    sequence: int | None,
) -> Marked:
    """Check what a row carries beside its columns, here and now."""
    for name, at in (("occurred", occurred), ("sent", sent)):
        if at is not None and not isinstance(at, datetime):
            raise UsageError(f"{name} is a datetime, not {shown(at)}")
    return Marked(row, False, checked_headers(headers), occurred, sent, checked_sequence(sequence))


def checked_sequence(sequence: int | None) -> int | None:
    """Refuse a sequence number that is none."""
    if sequence is not None and not (isinstance(sequence, int) and 0 <= sequence < 1 << 62):
        raise UsageError(f"a sequence is a whole number from 0 on, not {shown(sequence)}")
    return sequence


def shown(value: Any) -> str:
    """Return a value's beginning for an error; one that cannot be written is named by its type."""
    try:
        return repr(value)[:80]
    except Exception:  # the user's own code
        return f"a {type(value).__name__} that cannot be shown"


def _may_change(field: pa.Field) -> bool:
    return bool(pa.types.is_nested(field.type) or pa.types.is_binary(field.type) or is_variant(field))


def _taker(names: list[str]) -> Callable[[Row], tuple[Any, ...]]:
    if len(names) == 1:
        only = names[0]
        return lambda row: (row[only],)
    return itemgetter(*names)


def _uncopied(topic: Topic, error: Exception) -> RowError:
    deep = isinstance(error, RecursionError)
    reason = "it is nested too deeply" if deep else f"{type(error).__name__} from its own code"
    return RowError(
        f'row cannot be copied, for topic "{topic.name}"',
        detail=reason,
        hint="nest it less" if deep else "pass plain Python values: dict, list, str, int, float, datetime",
    )


def checked_headers(headers: Headers | None) -> dict[str, bytes] | None:
    """Refuse headers that cannot be stored; return the others as bytes."""
    if not headers:
        return None
    try:
        return {
            name.encode().decode(): value.encode() if isinstance(value, str) else bytes(memoryview(value))
            for name, value in headers.items()
        }
    except (AttributeError, TypeError, ValueError) as error:
        raise UsageError(
            f"headers cannot be stored: {error}",
            hint='headers map names to bytes or text, as {"trace": "f00d"}',
        ) from None
