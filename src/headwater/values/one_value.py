"""One value that a reader has given, a part of a key or a bound, as one of its column.

Invariant: a value that the column cannot hold exactly is refused, never rounded or cut off.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.types as _t

from headwater.errors import UsageError
from headwater.schema import type_name


def fitted(value: Any, field: pa.Field, what: str) -> pa.Array:
    """Return one value that a reader has given, as one of its column."""
    try:
        whole = not isinstance(value, float) or not (_t.is_integer(field.type) or _t.is_temporal(field.type))
        made = pa.array([value], field.type) if whole else None
        if _t.is_date(field.type) and isinstance(value, datetime):
            made = None  # Arrow would cut off the time of day
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        made = None
    if made is None or value is None:
        raise UsageError(
            f'column "{field.name}" of {what} is {type_name(field)}', detail=f"got {value!r:.80}"
        )
    return made
