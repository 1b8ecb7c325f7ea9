"""The text by which a target outside finds a row: its key, as the log writes it.

Invariant: two keys have the same text only if they are equal.
"""

from __future__ import annotations

import pyarrow as pa

from headwater.errors import RowError
from headwater.values import keys
from headwater.values.keyed import KeyedSchema


def key_texts(rows: pa.RecordBatch, keyed: KeyedSchema) -> list[str]:
    """Return the text of each row's key: that of one column as it is, several as a JSON array.

    >>> from headwater.values.keyed import declare
    >>> rows = pa.record_batch({"shop": ["a", "b"], "item": [1, 2]})
    >>> key_texts(rows, declare("cache", rows.schema, ("shop", "item")))
    ['["a",1]', '["b",2]']
    """
    texts = keys.key_bytes([rows.column(name) for name in keyed.key])
    try:
        return list(texts.cast(pa.string()).to_pylist())
    except pa.ArrowInvalid:
        raise RowError(
            f"key of {keyed.what} is not text", hint="cast it to STRING, by hex() or base64()"
        ) from None
