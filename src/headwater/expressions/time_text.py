"""Text becomes a time, by a pattern of Spark's (``yyyy-MM-dd HH:mm:ss``) or as ISO 8601.

A pattern becomes a regular expression, which finds the fields of all texts at once. A text without an offset
is in UTC. Invariant: a text that does not fit, or that names a day or an hour that is not there, has no time.
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import UsageError
from headwater.schema import TIMESTAMP

Numbers = npt.NDArray[np.int64]

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_FIELDS = {
    "yyyy": r"(?P<year>\d{4})",
    "uuuu": r"(?P<year>\d{4})",
    "MMM": rf"(?P<month_name>(?i:{'|'.join(_MONTHS)}))",
    "MM": r"(?P<month>\d{2})",
    "M": r"(?P<month>\d{1,2})",
    "dd": r"(?P<day>\d{2})",
    "d": r"(?P<day>\d{1,2})",
    "HH": r"(?P<hour>\d{2})",
    "H": r"(?P<hour>\d{1,2})",
    "hh": r"(?P<half_hour>\d{2})",
    "h": r"(?P<half_hour>\d{1,2})",
    "a": r"(?P<half>(?i:AM|PM))",
    "mm": r"(?P<minute>\d{2})",
    "m": r"(?P<minute>\d{1,2})",
    "ss": r"(?P<second>\d{2})",
    "s": r"(?P<second>\d{1,2})",
    "XXX": r"(?P<offset>Z|[+-]\d{2}:\d{2})",
    "xxx": r"(?P<offset>[+-]\d{2}:\d{2})",
    "XX": r"(?P<offset>Z|[+-]\d{4})",
    "xx": r"(?P<offset>[+-]\d{4})",
    "X": r"(?P<offset>Z|[+-]\d{2}(?:\d{2})?)",
    "x": r"(?P<offset>[+-]\d{2}(?:\d{2})?)",
    "Z": r"(?P<offset>[+-]\d{4})",
    **{"S" * digits: rf"(?P<fraction>\d{{{digits}}})" for digits in range(1, 10)},
}
_ISO = (
    r"\s*(?P<year>\d{4})(?:-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2})"
    r"(?:[ T](?P<hour>\d{1,2}):(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d{1,9})\d*)?)?"
    r" ?(?P<offset>Z|UTC|[+-]\d{1,2}(?::\d{2})?)?)?)?)?\s*"
)
_MICROS = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}
_BELOW = {"hour": 24, "minute": 60, "second": 60}


def times(texts: pa.Array, pattern: str | None = None) -> pa.Array:
    """Return the times that texts tell, null where one tells none."""
    expression = f"^(?:{_ISO if pattern is None else regular_expression(pattern)})$"
    found = pc.extract_regex(texts, expression)
    names = {field.name for field in found.type}
    valid = pc.is_valid(found).to_numpy(zero_copy_only=False)
    fields = {name: pc.struct_field(found, name) for name in names}
    days, fits = _days(fields, len(texts))
    since_midnight, in_a_day = _since_midnight(fields, len(texts))
    micros = days * 86_400_000_000 + since_midnight
    return pa.array(micros, mask=~(valid & fits & in_a_day)).cast(TIMESTAMP)


@lru_cache(maxsize=256)
def regular_expression(pattern: str) -> str:
    """Return the regular expression of a pattern, or refuse a letter that has no meaning here."""
    tokens = re.finditer(r"'(?:[^']|'')*'|([A-Za-z])\1*|.", pattern, flags=re.DOTALL)
    found = "".join(_token(each.group(), pattern) for each in tokens)
    names = re.findall(r"\?P<(\w+)>", found)
    if len(set(names)) < len(names):
        raise UsageError(f'time pattern "{pattern}" has a field twice')
    if "year" not in names:
        raise UsageError(f'time pattern "{pattern}" has no year', hint='write "yyyy" for it')
    return found


def _token(text: str, pattern: str) -> str:
    if text == "''":
        return "'"
    if text[0] == "'" and len(text) > 1:
        return re.escape(text[1:-1].replace("''", "'"))
    if text in "[]":
        return {"[": "(?:", "]": ")?"}[text]
    if not text[0].isascii() or not text[0].isalpha():
        return re.escape(text)
    if text not in _FIELDS:
        raise UsageError(
            f'time pattern "{pattern}" has "{text}", which is not known here',
            hint="known are: " + " ".join(name for name in _FIELDS if name[0] != "S") + " S to SSSSSSSSS",
        )
    return _FIELDS[text]


def _number(fields: dict[str, pa.Array], name: str, default: int, count: int) -> Numbers:
    """Return a field as numbers, with what stands for it where a text leaves it out."""
    if name not in fields:
        return np.full(count, default, np.int64)
    given = pc.if_else(pc.equal(fields[name], ""), str(default), fields[name])
    numbers: Numbers = pc.fill_null(given.cast(pa.int64()), default).to_numpy()
    return numbers


def _days(fields: dict[str, pa.Array], count: int) -> tuple[Numbers, npt.NDArray[np.bool_]]:
    """Return the days since 1970, and whether there is such a day."""
    year, month, day = (
        _number(fields, name, default, count) for name, default in (("year", 1970), ("month", 1), ("day", 1))
    )
    if "month_name" in fields:
        lower = pc.utf8_lower(fields["month_name"])
        month = pc.fill_null(pc.index_in(lower, pa.array(_MONTHS)), 0).to_numpy().astype(np.int64) + 1
    months = ((year - 1970) * 12 + np.clip(month, 1, 12) - 1).astype("datetime64[M]")
    first = months.astype("datetime64[D]").astype(np.int64)
    length = (months + 1).astype("datetime64[D]").astype(np.int64) - first
    fits = (month >= 1) & (month <= 12) & (day >= 1) & (day <= length) & (year >= 1)
    return first + day - 1, fits


def _since_midnight(fields: dict[str, pa.Array], count: int) -> tuple[Numbers, npt.NDArray[np.bool_]]:
    """Return the microseconds since midnight in UTC, and whether a clock shows such a time."""
    parts = {name: _number(fields, name, 0, count) for name in _MICROS}
    fits = np.ones(count, bool)
    if "half_hour" in fields:
        half = _number(fields, "half_hour", 12, count)
        fits &= (half >= 1) & (half <= 12)
        afternoon = _afternoon(fields, count)
        parts["hour"] = half % 12 + 12 * afternoon
    for name, below in _BELOW.items():
        fits &= parts[name] < below
    micros = np.asarray(sum(parts[name] * length for name, length in _MICROS.items()))
    micros = micros + _fraction(fields, count)
    shift, in_range = _offset(fields, count)
    return micros - shift, fits & in_range


def _afternoon(fields: dict[str, pa.Array], count: int) -> Numbers:
    if "half" not in fields:
        return np.zeros(count, np.int64)
    later = pc.fill_null(pc.equal(pc.utf8_lower(fields["half"]), "pm"), False)
    return np.asarray(later.cast(pa.int64()).to_numpy())


def _fraction(fields: dict[str, pa.Array], count: int) -> Numbers:
    if "fraction" not in fields:
        return np.zeros(count, np.int64)
    padded = pc.utf8_slice_codeunits(pc.utf8_rpad(fields["fraction"], 6, "0"), 0, 6)
    return np.asarray(pc.fill_null(padded.cast(pa.int64()), 0).to_numpy())


def _offset(fields: dict[str, pa.Array], count: int) -> tuple[Numbers, npt.NDArray[np.bool_]]:
    """Return the offset from UTC in microseconds, and whether it is within 18 hours, as zones are."""
    if "offset" not in fields:
        return np.zeros(count, np.int64), np.ones(count, bool)
    parts = pc.extract_regex(fields["offset"], r"^(?P<sign>[+-])(?P<hours>\d{1,2}):?(?P<minutes>\d{2})?$")
    present = {name: pc.struct_field(parts, name) for name in ("hours", "minutes")}
    minutes = _number(present, "hours", 0, count) * 60 + _number(present, "minutes", 0, count)
    sign = pc.fill_null(pc.equal(pc.struct_field(parts, "sign"), "-"), False).to_numpy(zero_copy_only=False)
    in_range = (minutes <= 18 * 60) & (_number(present, "minutes", 0, count) < 60)
    return np.where(sign, -minutes, minutes) * 60_000_000, in_range
