"""Rows and tombstones of a compacted topic in one Arrow table, as results that change and go are given.

Invariant: what is made here is what ``Producer.send`` and ``Producer.delete`` make of the same rows one by
one: a tombstone has its key, and when it happened, and nothing else of its row counts or is looked at.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater import record
from headwater.errors import RowError
from headwater.record import DELETED
from headwater.topic import Topic
from headwater.values import rows, years
from headwater.values.cast import cast
from headwater.values.columns import Misfit

_OCCURRED = "_occurred"
_GIVEN = (_OCCURRED, "_sent", "_headers")
"""Metadata that a table of changes may bring along."""
Changes = tuple[pa.RecordBatch, dict[str, pa.Array]]
"""Checked rows, and the metadata columns that tell which of them are tombstones, and since when."""


def from_changes(table: pa.Table, topic: Topic) -> list[Changes]:
    """Convert a table, all or nothing; one without a column ``_deleted`` has no tombstones."""
    batches = table.combine_chunks().to_batches()
    return [_converted(batch, topic) for batch in batches]


def _converted(batch: pa.RecordBatch, topic: Topic) -> Changes:
    given = [name for name in _GIVEN if name in batch.schema.names]
    if DELETED not in batch.schema.names:
        brought = {name: batch[name] for name in given}
        return rows.from_arrow(batch.drop_columns(given), topic, brought), brought
    deleted = pc.fill_null(batch[DELETED], False)
    occurred = {} if _OCCURRED in given else _occurred(batch, deleted, topic)
    extras = {DELETED: deleted, **occurred, **{name: batch[name] for name in given}}
    bare = _only_keys(batch.drop_columns([DELETED, *given]), deleted, topic)
    return rows.from_arrow(bare, topic, extras), extras


def _only_keys(batch: pa.RecordBatch, deleted: pa.Array, topic: Topic) -> pa.RecordBatch:
    """Return rows with nulls in place of all that a tombstone does not keep, whatever the type."""
    if not deleted.true_count:
        return batch
    places = pc.if_else(deleted, pa.scalar(None, pa.int64()), pa.array(np.arange(len(batch))))
    columns = [
        column if name in topic.key else column.take(places)
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _occurred(batch: pa.RecordBatch, deleted: pa.Array, topic: Topic) -> dict[str, pa.Array]:
    """Return when deletions happened, where any of them tells."""
    name = topic.event_time
    if name is None or name not in batch.schema.names:
        return {}
    told = pc.if_else(deleted, batch[name], pa.scalar(None, batch[name].type))
    try:
        column = cast(told, topic.schema.field(name).type, name, topic).cast(record.META[_OCCURRED])
    except (Misfit, pa.ArrowException, NotImplementedError) as error:
        raise RowError(
            f'column "{name}" of topic "{topic.name}" does not tell when rows were deleted',
            detail=str(error).split("\n")[0],
        ) from None
    if (row := years.outside(column)) is not None:
        raise RowError('time "occurred" of a record cannot be read', detail=years.REASON, row=row)
    return {_OCCURRED: column} if column.null_count < len(column) else {}
