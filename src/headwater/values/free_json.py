"""Free JSON: Python values as JSON text, and JSON text that is kept as it was written.

orjson is fast, but writes NaN as null, refuses integers over 64 bits, reads them as doubles, and keeps
the last of two members of one name. Invariant: what is stored is the value that was handed over, to
the last digit, or it was refused.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Container
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from headwater.values.columns import Misfit

_DOUBTFUL = re.compile(
    rb"(?:^|[:,\[\s])-?(?:[0-9.]{16}|[0-9.]+[eE][+-]?[0-9]{3})|(?:^|[:,\[\s])-0(?![.0-9])|\\u003[aA]"
)
"""Numbers that orjson may not read as they are, and colons that ``_members`` would not see.

A number stands behind one of these signs, or first; most texts that look like one do not."""
_DOUBTFUL_RE2 = r"(^|[:,\[\s])-?([0-9.]{16}|[0-9.]+[eE][+-]?[0-9]{3})|(^|[:,\[\s])-0([^.0-9]|$)|\\u003[aA]"
"""The same for Arrow's RE2, which is 12 times as fast over many lines, and slower over one."""
_KINDS = bytes.maketrans(b"0123456789.eE+", b"dddddddddddee-")
_SUSPICIOUS = (b"d" * 16, b"deddd", b"de-ddd")
"""What a doubtful number looks like where each digit is a ``d``: found faster than by either expression."""
_ONE_DIGIT = re.compile(rb"-d(?!d)")
_MANY = 4096
_DEEPEST = 250
_SPACE = re.compile(r"[ \t\r\n]*")
_LONG = json.JSONDecoder(parse_int=str, parse_float=str)
"""For finding where a value ends: it makes no number, so none is too long."""


class JsonText(str):
    """A value as it is written in JSON."""

    def exact(self) -> Any:
        """Parse it so that nothing is lost: fractions as ``Decimal``, no member twice."""
        return exact(self)


def text(value: Any) -> str:
    """Return a Python value as JSON, or raise ``Misfit``."""
    if isinstance(value, JsonText):
        return str(value)
    try:
        written = orjson.dumps(value)
    except TypeError as error:
        if "64-bit" not in str(error):
            raise _refused(error) from None
        written = b"null"
    if b"null" in written:
        written = _dumped(_exact(value))
    return written.decode()


def too_deep(line: bytes, parsed: Any) -> bool:
    """Tell whether JSON is nested deeper than orjson writes, so that no way in takes what another refuses."""
    if line.count(b"[") + line.count(b"{") < _DEEPEST:
        return False
    try:
        orjson.dumps(parsed)
    except TypeError:
        return True
    return False


def doubtful(line: bytes) -> bool:
    """Tell whether a number may be read as another one than is written."""
    if len(line) < _MANY:
        return _DOUBTFUL.search(line) is not None
    kinds = line.translate(_KINDS)
    if not any(each in kinds for each in _SUSPICIOUS) and not _ONE_DIGIT.search(kinds):
        return b"\\u003" in line and _DOUBTFUL.search(line) is not None
    return bool(pc.match_substring_regex(pa.scalar(line, pa.binary()), _DOUBTFUL_RE2).as_py())


def is_exact(line: bytes, parsed: Any) -> bool:
    """Tell whether what orjson made of an object is all that was written, to the last digit.

    A member that another of its name took the place of has left fewer colons.
    """
    return not doubtful(line) and orjson.dumps(parsed).count(b":") == line.count(b":")


def members(line: bytes, names: Container[str]) -> dict[str, Any]:
    """Return the members of an object, each as it is written; none of the names may be there twice.

    ``line`` is an object, as orjson has found.
    """
    written = line.decode()
    found: dict[str, JsonText] = {}
    at = _after_space(written, _after_space(written, 0) + 1)
    while written[at] != "}":
        name, at = _LONG.raw_decode(written, at)
        start = _after_space(written, _after_space(written, at) + 1)
        _, at = _LONG.raw_decode(written, start)
        if name in found and name in names:
            raise Misfit(f'"{name}" is there twice')
        found[name] = JsonText(written[start:at])
        at = _after_space(written, at)
        if written[at] == ",":
            at = _after_space(written, at + 1)
    return dict(found)


def exact(written: str) -> Any:
    """Parse JSON so that nothing is lost: fractions as ``Decimal``, no member twice."""
    try:
        return json.loads(written, parse_float=Decimal, parse_int=_integer, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise Misfit(str(error)) from None


def _dumped(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError as error:
        raise _refused(error) from None


def _refused(error: TypeError) -> Misfit:
    return Misfit("it is nested too deeply" if "Recursion" in str(error) else str(error))


def _exact(value: Any) -> Any:
    """Return a value as orjson writes it exactly, or refuse what JSON has no number for."""
    if isinstance(value, float) and not math.isfinite(value):
        raise Misfit(f"JSON has no number for {value!r}")
    if type(value) is int and not -(1 << 63) <= value < 1 << 64:
        return orjson.Fragment(_digits(value))
    if isinstance(value, dict):
        return {name: _exact(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_exact(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _exact(dataclasses.asdict(value))
    return value


def _digits(number: int) -> str:
    try:
        return str(number)
    except ValueError as error:  # Python has a limit
        raise Misfit(str(error).split(";")[0]) from None


def _integer(written: str) -> int | float:
    return -0.0 if written == "-0" else int(written)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise Misfit("it has a member twice")
    return made


def _after_space(written: str, at: int) -> int:
    match = _SPACE.match(written, at)
    assert match is not None
    return match.end()
