"""Cells in the text form of PostgreSQL as Arrow columns: every type has one.

The settings of the connection (``session.py``) make the forms those that are read here: ISO dates in UTC,
numbers with all their digits, bytes in hexadecimal.

Invariant: as of ``binary_columns``; and both forms of a value become the same.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.capture.postgres.binary_columns import Decode, Decoded, texts
from headwater.capture.postgres.tuples import Cells

_FINITE: Final = r"^[-0-9.]+$"
_DATE: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIMESTAMP: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:.]+(\+00)?$"


def numbers(kind: pa.DataType) -> Decode:
    """Return what reads whole and floating numbers."""
    return lambda cells: (cells.binary().cast(pa.string()).cast(kind), {})


def booleans(cells: Cells) -> Decoded:
    """Read truth values."""
    return pc.equal(cells.binary(), b"t"), {}


def decimals(kind: pa.Decimal128Type) -> Decode:
    """Return what reads decimal numbers."""
    return lambda cells: _fitting(cells, _FINITE, kind)


def dates(cells: Cells) -> Decoded:
    """Read dates of the years 1 to 9999."""
    return _fitting(cells, _DATE, pa.date32())


def timestamps(kind: pa.TimestampType) -> Decode:
    """Return what reads timestamps of the years 1 to 9999."""
    return lambda cells: _fitting(cells, _TIMESTAMP, kind)


def raw(cells: Cells) -> Decoded:
    """Read bytes from hexadecimal digits behind ``\\x``."""
    digits = cells.behind(2).binary()
    ends = pc.binary_length(digits).fill_null(0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(ends // 2)]).astype(np.int32)
    joined = bytes.fromhex(b"".join(digits.drop_null().to_pylist()).decode("ascii"))
    valid = pa.py_buffer(np.packbits(cells.valid, bitorder="little"))
    return pa.Array.from_buffers(
        pa.binary(), len(cells), [valid, pa.py_buffer(offsets), pa.py_buffer(joined)]
    ), {}


def _fitting(cells: Cells, pattern: str, kind: pa.DataType) -> Decoded:
    """Read what has a form that a type can hold, and tell what has not."""
    written, unfit = texts(cells)
    fit = pc.match_substring_regex(written, pattern)
    if pc.all(fit).as_py() is False:
        wrong = np.flatnonzero(pc.invert(fit).fill_null(False).to_numpy(zero_copy_only=False))
        unfit = {**unfit, **{int(row): written[int(row)].as_py() for row in wrong}}
        written = pc.if_else(fit, written, pa.scalar(None, pa.string()))
    return written.cast(kind), unfit
