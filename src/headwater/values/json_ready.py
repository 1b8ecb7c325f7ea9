"""What the public API returns, as JSON: one form for scripts, ``--format ndjson`` and HTTP.

Invariant: what ``to_dict`` returns is made of what JSON has, whatever was in it; a time that no calendar has
is told as none, not as an error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

from headwater.durations import instant
from headwater.errors import HeadwaterError


class JsonReady:
    """A frozen dataclass that can be told as JSON.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Delivery(JsonReady):
    ...     items: tuple[str, ...]
    ...     after: timedelta
    >>> Delivery(("tea", "rum"), timedelta(minutes=2)).to_dict()
    {'items': ['tea', 'rum'], 'after': 120.0}
    """

    def to_dict(self) -> dict[str, Any]:
        """Return it as a dictionary that ``json.dumps`` takes as it is."""
        return {name: json_ready(value) for name, value in self.facts().items()}

    def facts(self) -> dict[str, Any]:
        """Return what is told of it, by name: its fields, unless a class says otherwise."""
        return {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]


def json_ready(value: Any) -> Any:
    """Return a value as JSON has it: times in ISO 8601, lengths of time in seconds, the rest as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no number for it
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, JsonReady):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(key): json_ready(each) for key, each in value.items()}
    if isinstance(value, list | tuple | Set):
        return [json_ready(each) for each in value]
    return _text(value)


def _text(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, HeadwaterError):
        return ": ".join(filter(None, (value.message, value.detail)))
    return str(value)


def calendar_time(micros: int | None) -> datetime | None:
    """Return microseconds since 1970 as a time in UTC; None where no calendar has it.

    >>> calendar_time(1_767_323_045_000_000).isoformat()
    '2026-01-02T03:04:05+00:00'
    """
    try:
        return None if micros is None else instant(micros)
    except OverflowError:
        return None
