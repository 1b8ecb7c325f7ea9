"""Values of a column as Arrow: as the binlog's reader hands them out, and as a query returns them.

Both make the same of the same value. A column is converted at once; only where that fails is each value
looked at, to find the one that the column cannot hold. Invariant: a value is never turned into something
near it: it is null, and told as one that does not fit, with its text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from headwater.capture.mysql.column_types import MySqlColumn

_NO_TIMESTAMP: Final = datetime(1970, 1, 1)
"""A TIMESTAMP begins a second later: this is ``0000-00-00 00:00:00``."""
_NO_YEAR: Final = 1900
_ZERO: Final = {"date": "0000-00-00", "datetime": "0000-00-00 00:00:00", "timestamp": "0000-00-00 00:00:00"}
_WRONG: Final = (pa.ArrowException, ValueError, TypeError, OverflowError, ArithmeticError)
Convert = Callable[[Any], Any]


@dataclass(frozen=True)
class ConvertedColumn:
    """A column, and the texts of values that it cannot hold, by row."""

    array: pa.Array
    unfit: Mapping[int, str]


class _Misfit(ValueError):
    """A value that no Arrow type of its column holds; the message is its text."""


def from_binlog(
    column: MySqlColumn, values: Sequence[Any], out_of_range: Sequence[int] = ()
) -> ConvertedColumn:
    """Convert what the reader of the binlog has made of a column.

    ``out_of_range`` are the rows of which it says None for a date that Python does not have, such as
    ``0000-00-00`` or ``2024-00-01``; which one it was it does not tell.
    """
    # The reader has made an object of each value already: here too each is looked at where its form is not
    # that of Arrow.
    made = _converted(column, values, _BINLOG.get(column.kind, _as_it_is))
    zero = {row: f"{_ZERO.get(column.kind, 'a value')} or another date that is none" for row in out_of_range}
    return ConvertedColumn(made.array, {**made.unfit, **zero}) if zero else made


def from_query(column: MySqlColumn, values: Sequence[Any]) -> ConvertedColumn:
    """Convert what a query has returned for a column."""
    if column.kind in _ZERO:
        return _dates(column, values)
    return _converted(column, values, _QUERY.get(column.kind, _as_it_is))


def _converted(
    column: MySqlColumn, values: Sequence[Any], form: Callable[[MySqlColumn], Convert | None]
) -> ConvertedColumn:
    convert = form(column)
    try:
        ready = values if convert is None else [None if each is None else convert(each) for each in values]
        return ConvertedColumn(pa.array(ready, column.type), {})
    except _WRONG:
        return _one_by_one(column, values, convert or (lambda value: value))


def _one_by_one(column: MySqlColumn, values: Sequence[Any], convert: Convert) -> ConvertedColumn:
    found: list[Any] = []
    unfit: dict[int, str] = {}
    for row, value in enumerate(values):
        try:
            found.append(None if value is None else pa.scalar(convert(value), column.type).as_py())
        except _WRONG as error:
            found.append(None)
            unfit[row] = str(error) if isinstance(error, _Misfit) else f"{value!s:.200}"
    return ConvertedColumn(pa.array(found, column.type), unfit)


def _dates(column: MySqlColumn, values: Sequence[Any]) -> ConvertedColumn:
    """Convert dates that are text."""
    texts = pa.array(values, pa.string())
    if not pc.any(pc.starts_with(texts, "0000")).as_py():
        try:
            return ConvertedColumn(pc.cast(texts, column.type), {})
        except _WRONG:
            pass
    read: Convert = date.fromisoformat if column.kind == "date" else datetime.fromisoformat
    return _one_by_one(column, values, read)


def _as_it_is(column: MySqlColumn) -> Convert | None:
    return str if column.kind == "decimal" and pa.types.is_string(column.type) else None


def _timestamp(_: MySqlColumn) -> Convert:
    def convert(value: datetime) -> datetime:
        if value == _NO_TIMESTAMP:
            raise _Misfit(_ZERO["timestamp"])
        return value

    return convert


def _padded(column: MySqlColumn) -> Convert:
    # The binlog leaves out the zeros at the end.
    return lambda value: value.ljust(column.width, b"\0")


def _time(column: MySqlColumn) -> Convert:
    def convert(value: timedelta) -> str:
        if value < timedelta(0) and column.width:
            raise _Misfit("a negative time with a fraction, which the binlog's reader does not read rightly")
        return time_text(value, column.width)

    return convert


def time_text(value: timedelta, digits: int) -> str:
    """Return a time as the server prints it, with some digits of a second.

    >>> time_text(timedelta(hours=-30, seconds=-5), 0)
    '-30:00:05'
    """
    sign, value = ("-", -value) if value < timedelta(0) else ("", value)
    seconds = value.days * 86_400 + value.seconds
    whole = f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{whole}.{value.microseconds:06}"[: len(whole) + 1 + digits] if digits else whole


def _year(_: MySqlColumn) -> Convert:
    return lambda value: 0 if value == _NO_YEAR else value


def _set(column: MySqlColumn) -> Convert:
    order = {member: number for number, member in enumerate(column.members)}
    return lambda value: ",".join(sorted(value, key=lambda member: order.get(member, len(order))))


def _json(_: MySqlColumn) -> Convert:
    # MariaDB keeps the text; of MySQL the reader makes objects, which are printed as the server prints them.
    return lambda value: value if isinstance(value, str) else json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: Any) -> Any:
    """Return a JSON value of the reader with texts in the place of their bytes."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        return {_plain(name): _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _bits(column: MySqlColumn) -> Convert:
    def convert(value: str | bytes) -> int | bool:
        number = int(value, 2) if isinstance(value, str) else int.from_bytes(value, "big")
        return bool(number) if column.width == 1 else number

    return convert


_BINLOG: Final[Mapping[str, Callable[[MySqlColumn], Convert | None]]] = {
    "timestamp": _timestamp,
    "binary": _padded,
    "time": _time,
    "year": _year,
    "set": _set,
    "json": _json,
    "bit": _bits,
}
_QUERY: Final[Mapping[str, Callable[[MySqlColumn], Convert | None]]] = {"bit": _bits}
