"""Cells in the binary form of PostgreSQL as Arrow columns, for the types that are common.

Invariant: a column is as long as its cells; a row whose value the Arrow type cannot hold is null, and its
value is told beside the column, as PostgreSQL prints it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.capture.postgres import numeric
from headwater.capture.postgres.tuples import Cells

Decoded = tuple[pa.Array, dict[int, str]]
"""A column, and what is in the rows that it cannot hold."""
Decode = Callable[[Cells], Decoded]

EPOCH_DAYS: Final = (date(2000, 1, 1) - date(1970, 1, 1)).days
_DAY_MICROSECONDS: Final = 86_400_000_000
EPOCH_MICROSECONDS: Final = EPOCH_DAYS * _DAY_MICROSECONDS
"""PostgreSQL counts from the year 2000, Arrow from 1970."""
_FIRST_DAY: Final = (date.min - date(2000, 1, 1)).days
_LAST_DAY: Final = (date.max - date(2000, 1, 1)).days
_CYCLE_DAYS, _CYCLE_YEARS = 146_097, 400
_HEX: Final = np.frombuffer(b"0123456789abcdef", np.uint8)
_HYPHENS: Final = (8, 13, 18, 23)


def numbers(code: str, kind: pa.DataType) -> Decode:
    """Return what decodes numbers of a fixed width."""

    def decode(cells: Cells) -> Decoded:
        found = pa.array(_fixed(cells, code), mask=cells.missing)
        return (found if found.type == kind else found.cast(kind)), {}

    return decode


def booleans(cells: Cells) -> Decoded:
    """Decode truth values."""
    return pa.array(_fixed(cells, "u1") != 0, mask=cells.missing), {}


def texts(cells: Cells) -> Decoded:
    """Decode texts; one that is not UTF-8, as a database without an encoding may hold, does not fit."""
    found = cells.binary()
    try:
        return found.cast(pa.string()), {}
    except pa.ArrowInvalid:
        return _readable(found)


def _readable(found: pa.BinaryArray) -> Decoded:
    values, unfit = found.to_pylist(), {}
    for row, value in enumerate(values):
        try:
            values[row] = None if value is None else value.decode()
        except UnicodeDecodeError:
            values[row], unfit[row] = None, repr(value)
    return pa.array(values, pa.string()), unfit


def raw(cells: Cells) -> Decoded:
    """Decode bytes."""
    return cells.binary(), {}


def jsonb(cells: Cells) -> Decoded:
    """Decode JSON behind the number of its format, of which there is one."""
    return texts(cells.behind(1))


def uuids(cells: Cells) -> Decoded:
    """Decode UUIDs into texts."""
    at = np.where(cells.valid, cells.start, 0)
    octets = cells.buffer.bytes[at[:, None] + np.arange(16)]
    written = np.full((len(at), 36), ord("-"), np.uint8)
    places = [place for place in range(36) if place not in _HYPHENS]
    written[:, places[0::2]], written[:, places[1::2]] = _HEX[octets >> 4], _HEX[octets & 15]
    offsets = np.arange(0, 36 * len(at) + 1, 36, dtype=np.int32)
    valid = pa.py_buffer(np.packbits(cells.valid, bitorder="little"))
    return pa.Array.from_buffers(
        pa.string(), len(at), [valid, pa.py_buffer(offsets), pa.py_buffer(written)]
    ), {}


def decimals(kind: pa.Decimal128Type) -> Decode:
    """Return what decodes decimal numbers."""
    return lambda cells: numeric.decimals(cells, kind)


def dates(cells: Cells) -> Decoded:
    """Decode dates of the years 1 to 9999."""
    days = _fixed(cells, "i4").astype(np.int64)
    fit = (days >= _FIRST_DAY) & (days <= _LAST_DAY)
    unfit = {int(row): _date_text(int(days[row])) for row in np.flatnonzero(cells.valid & ~fit)}
    inside = np.where(fit, days, 0) + EPOCH_DAYS
    return pa.array(inside.astype(np.int32), mask=~(cells.valid & fit)).cast(pa.date32()), unfit


def timestamps(kind: pa.TimestampType) -> Decode:
    """Return what decodes timestamps of the years 1 to 9999."""

    def decode(cells: Cells) -> Decoded:
        moments = _fixed(cells, "i8").astype(np.int64)
        fit = (moments >= _FIRST_DAY * _DAY_MICROSECONDS) & (moments < (_LAST_DAY + 1) * _DAY_MICROSECONDS)
        zone = "+00" if kind.tz else ""
        wrong = np.flatnonzero(cells.valid & ~fit)
        unfit = {int(row): _moment_text(int(moments[row]), zone) for row in wrong}
        inside = np.where(fit, moments, 0) + EPOCH_MICROSECONDS
        return pa.array(inside, mask=~(cells.valid & fit)).cast(kind), unfit

    return decode


def _fixed(cells: Cells, code: str) -> npt.NDArray[np.generic]:
    return cells.buffer.numbers(code, cells.placed)


def _date_text(days: int) -> str:
    if days in (2**31 - 1, -(2**31)):
        return "infinity" if days > 0 else "-infinity"
    year, rest = _date_parts(days)
    return f"{year:04d}{rest}" if year > 0 else f"{1 - year:04d}{rest} BC"


def _moment_text(moment: int, zone: str) -> str:
    if moment in (2**63 - 1, -(2**63)):
        return "infinity" if moment > 0 else "-infinity"
    days, within = divmod(moment, _DAY_MICROSECONDS)
    year, rest = _date_parts(days)
    time = (datetime.min + timedelta(microseconds=within)).time().isoformat()
    time = f" {time.rstrip('0') if '.' in time else time}{zone}"
    return f"{year:04d}{rest}{time}" if year > 0 else f"{1 - year:04d}{rest}{time} BC"


def _date_parts(days: int) -> tuple[int, str]:
    """Return the year of a day, before Christ too, and its month and day as text."""
    cycles, within = divmod(days, _CYCLE_DAYS)
    same = date(2000, 1, 1) + timedelta(days=within)
    return same.year + cycles * _CYCLE_YEARS, f"{same:-%m-%d}"
