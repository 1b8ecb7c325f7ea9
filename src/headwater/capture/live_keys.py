"""The keys that a compacted topic has a row for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headwater.log import Log
from headwater.record import DELETED
from headwater.values.keys import key_bytes


def live_keys(log: Log, topic: str, key: Sequence[str]) -> pa.Table:
    """Return the keys whose newest record is no deletion."""
    schema = pa.schema([log.topic(topic).schema.field(name) for name in key])
    kept = [_select(batch, key) for batch in log.read(topic) if len(batch)]
    if not kept:
        return schema.empty_table()
    table = pa.Table.from_batches(kept).combine_chunks()
    names = key_bytes([table.column(name).combine_chunks() for name in key])
    codes = names.dictionary_encode().indices.to_numpy()
    newest = np.full(codes.max() + 1, -1)
    newest[codes] = np.arange(len(codes))  # of several, the last one counts: a key is in one partition
    alive = ~table.column(DELETED).to_numpy()[newest]
    return table.take(pa.array(newest[alive])).select(list(key)).cast(schema)


def _select(batch: pa.RecordBatch, key: Sequence[str]) -> pa.RecordBatch:
    return batch.select([*key, DELETED])
