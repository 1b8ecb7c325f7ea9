"""Records of a topic as JSON: where they lie, when they came, their key, value and headers.

Invariant: a value is written as ``values.jsonl`` writes it, whatever its types.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import orjson
import pyarrow as pa

from headwater import record
from headwater.serve.push.row_json import encode_rows, encode_values
from headwater.values import jsonl

_NULL = b"null"


def encode_records(batch: pa.RecordBatch, key: Sequence[str]) -> list[bytes]:
    """Return each record of a batch that was read with its metadata."""
    values = encode_rows(batch.select([name for name in batch.schema.names if name not in record.META]))
    keys = encode_values(batch.select(list(key))) if key else [_NULL] * len(batch)
    columns = (
        batch["_partition"].to_pylist(),
        batch["_offset"].to_pylist(),
        *(_texts(batch[name]) for name in ("_received", "_occurred", "_headers")),
        batch["_producer"].to_pylist(),
        batch[record.DELETED].to_pylist(),
    )
    return [_record(*each) for each in zip(keys, values, *columns, strict=True)]


def _record(key: bytes, value: bytes, partition: int, offset: int, *others: object) -> bytes:
    received, occurred, headers, producer, deleted = others
    return (
        b'{"partition":%d,"offset":%d,"received":%s,"occurred":%s,"producer":%s,'
        b'"key":%s,"value":%s,"headers":%s,"deleted":%s}'
    ) % (
        partition, offset, received, occurred, orjson.dumps(producer), key,
        _NULL if deleted else value, headers, b"true" if deleted else b"false",
    )  # fmt: skip


def _texts(column: pa.Array) -> Iterator[bytes]:
    return (_NULL if text is None else text.encode() for text in jsonl.text(column).to_pylist())
