"""The rows that a compacted topic holds: the newest of each key, unless that is a deletion."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headwater.log import Log
from headwater.record import DELETED
from headwater.values.keys import key_bytes


def live_rows(log: Log, topic: str, key: Sequence[str], columns: Sequence[str]) -> pa.Table:
    """Return some columns of the rows whose newest record is no deletion."""
    names = list(dict.fromkeys([*key, *columns, DELETED]))
    schema = pa.schema([log.topic(topic).schema.field(name).with_nullable(True) for name in columns])
    kept = [batch.select(names) for batch in log.read(topic) if len(batch)]
    return (
        newest(pa.Table.from_batches(kept), key).select(list(columns)).cast(schema)
        if kept
        else schema.empty_table()
    )


def newest(records: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return the newest record of each key, in order, unless it is a deletion."""
    table = records.combine_chunks()
    codes = key_bytes([table.column(name).combine_chunks() for name in key]).dictionary_encode().indices
    last = np.full(len(table), -1)
    last[codes.to_numpy()] = np.arange(len(table))  # of several, the last: a key is in one partition
    last = last[last >= 0]
    alive = ~table.column(DELETED).to_numpy()[last]
    return table.take(pa.array(last[alive]))
