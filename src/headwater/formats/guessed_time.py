"""Which column says when an event happened: by its name, and by how large its numbers are.

Invariant: what is returned is a column of times, or an expression of Spark SQL over a column of numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from headwater.formats.json_columns import GuessedColumn, quoted

_BEST = re.compile(r"(event_?time|occurred(_?at)?|event_?timestamp)", re.IGNORECASE)
_GOOD = re.compile(r"(timestamp|ts|time|at|when)", re.IGNORECASE)
_SOME = re.compile(r".*(_at|_ts|_time|_timestamp|_ms|_millis|At|Ts|Time|Timestamp|Ms|Millis)")
_FROM, _TO = 946_684_800, 4_102_444_800
"""The years 2000 to 2100, in seconds."""
_UNITS = {1: "timestamp_seconds", 1_000: "timestamp_millis", 1_000_000: "timestamp_micros"}


def event_time(columns: Sequence[GuessedColumn]) -> str | None:
    """Return the column of the event time or an expression for it, None where nothing looks like one.

    >>> event_time([GuessedColumn("id", "BIGINT", [7]), GuessedColumn("at", "BIGINT", [1_700_000_000_000])])
    'timestamp_millis(at)'
    """
    found = [(_rank(each), number, text) for number, each in enumerate(columns) if (text := _time(each))]
    return min(found)[2] if found else None


def _rank(column: GuessedColumn) -> int:
    """Return how little a name says of time."""
    tests = (_BEST, _GOOD, _SOME)
    return next((rank for rank, test in enumerate(tests) if test.fullmatch(column.name)), len(tests))


def _time(column: GuessedColumn) -> str | None:
    if column.type == "TIMESTAMP":
        return column.name
    if _rank(column) > 2:
        return None  # of numbers without such a name there are many
    numbers = [value for value in column.values if value is not None]
    if not numbers or column.type not in ("BIGINT", "DOUBLE"):
        return None
    for unit, function in _UNITS.items():
        whole = unit == 1 or column.type == "BIGINT"
        if whole and all(_FROM * unit <= value < _TO * unit for value in numbers):
            return f"{function}({quoted(column.name)})"
    return None
