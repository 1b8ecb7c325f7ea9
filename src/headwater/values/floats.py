"""Numbers on their way into FLOAT and DOUBLE columns: kept, or refused.

A binary number is seldom the decimal that was written: 0.1 is kept as the nearest one, which is written
as 0.1 again. That is the rule here. Invariant: what is stored, written with as many digits as were
handed over, is what was handed over; nothing overflows to infinity or underflows to zero.
"""

from __future__ import annotations

import math
import re
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.values.columns import Misfit

_MANY_DIGITS = r"[0-9.]{16,}|[eE][+-]?[0-9]{3}"
"""What a double may not hold: up to 15 digits come back as they were."""
_ALL_DIGITS = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
_NOT_FINITE = r"(?i)^[+-]?(nan|inf|infinity)$"


def double(number: int | Decimal) -> float:
    """Return a number as a double, or raise ``Misfit`` where it would be another one."""
    exact = Decimal(number)
    try:
        stored = float(exact)
    except OverflowError:
        stored = math.inf
    if not _written_alike(stored, exact):
        raise _changed(number, stored)
    return stored


def single(doubles: pa.Array) -> pa.Array:
    """Return doubles as FLOAT, or raise ``Misfit`` where one would be another number."""
    singles = pc.cast(doubles, pa.float32(), safe=False)
    for index in np.flatnonzero(_differs(doubles, singles)).tolist():
        value, stored = doubles[index].as_py(), singles[index].as_py()
        if not _written_alike(stored, Decimal(repr(value))):
            raise _changed(value, stored)
    return singles


def read(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return numbers in text, as a CSV file has them."""
    texts = pc.utf8_trim_whitespace(texts)
    made = pc.cast(texts, pa.float64())
    doubtful = pc.match_substring_regex(texts, _MANY_DIGITS)
    doubtful = pc.or_(doubtful, pc.invert(pc.is_finite(made)))
    for text in texts.filter(doubtful).to_pylist():
        if text is not None and not re.match(_NOT_FINITE, text):
            double(Decimal(text))
    return single(made) if kind == pa.float32() else made


def _differs(doubles: pa.Array, singles: pa.Array) -> npt.NDArray[np.bool_]:
    """Tell which values are neither the same nor written the same; the few left are looked at one by one."""
    back = pc.cast(singles, pa.float64())
    same = pc.or_(pc.equal(back, doubles), pc.is_nan(doubles))
    if pc.all(same, min_count=0).as_py() is False:
        written = pc.cast(pc.cast(singles, pa.string()), pa.float64())
        same = pc.or_(same, pc.and_(pc.equal(written, doubles), pc.is_finite(singles)))
    differs: npt.NDArray[np.bool_] = ~pc.fill_null(same, True).to_numpy(zero_copy_only=False)
    return differs


def _written_alike(stored: float, exact: Decimal) -> bool:
    """Tell whether a number, rounded to the digits that were given, is the one that was given."""
    if not math.isfinite(stored) or (stored == 0) != (exact == 0):
        return False
    _, _, exponent = exact.normalize(_ALL_DIGITS).as_tuple()
    unit = Fraction(10) ** int(exponent)
    return abs(Fraction(stored) - Fraction(exact)) * 2 <= unit


def _changed(value: object, stored: float) -> Misfit:
    return Misfit(f"{value!s:.60} would be changed to {stored!r}")
