"""What a record carries beside its own columns, and the names under which it is read.

Invariant: these names and types are the same on every backend.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from headwater.schema import TIMESTAMP

HEADERS = pa.map_(pa.string(), pa.binary())
Headers = Mapping[str, bytes | str]

DELETED = "_deleted"
"""The column that tells which rows are deletions of their keys, wherever rows go."""

META: dict[str, pa.DataType] = {
    DELETED: pa.bool_(),  # the key was deleted; the other columns are null
    "_partition": pa.int32(),
    "_offset": pa.int64(),
    "_occurred": TIMESTAMP,  # when it happened, by the device's clock
    "_sent": TIMESTAMP,  # when it was sent, by the device's clock
    "_received": TIMESTAMP,  # when the log stored it; rises in a partition, but see log/…/received_time.py
    "_producer": pa.string(),
    "_sequence": pa.int64(),  # grows within a producer and partition
    "_headers": HEADERS,
}
"""Metadata columns of a record as it is read with ``meta=True``, in their order."""

RESERVED = frozenset({*META, "_steps"})
"""Names, in any case, that no column of a topic may have: frames and archives use them."""

MAX_BYTES = 1_000_000
"""Size over which a record is refused, on every backend."""
ORIGIN = "headwater.origin"
"""The header of a dead letter, and of one that is tried again, that tells where it was."""
LETTER_BYTES = 8192
"""How much larger a record with that header may be: what tells why it died comes on top of what it was."""


def read_schema(schema: pa.Schema, compacted: bool, meta: bool = False) -> pa.Schema:
    """Return the schema of what is read: a tombstone has nulls, so every column is nullable."""
    fields = [f.with_nullable(True) for f in schema]
    names = META if meta else (DELETED,) if compacted else ()
    return pa.schema(fields + [pa.field(name, META[name]) for name in names])
