"""The last known rows of a captured table, found in its topic by key.

A database does not send a large value again that a change has left as it was. It is in the topic: the last
record of the key has it. Where that record is, is remembered; what it holds is read when it is asked for.
Invariant: a row is the newest that the topic has when it is asked for.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.log import Log, Position
from headwater.record import DELETED
from headwater.values.keys import key_bytes

LARGE = 16
"""A value that is kept apart has more bytes than this; rows of fewer are not remembered."""


class LastRows:
    """The last rows of one topic."""

    def __init__(self, log: Log, topic: str, key: Sequence[str]):
        self._log, self._topic, self._key = log, topic, tuple(key)
        self._places: dict[bytes, tuple[int, int]] = {}
        """The partition and offset of the last large row of each key."""
        self._removed: dict[bytes, tuple[int, int]] = {}
        """Those of the row that the last record deletes: it may be about to come again under another key."""
        self._next: Position = log.resolve(topic, "earliest")

    def find(self, keys: Iterable[bytes]) -> dict[bytes, Mapping[str, Any]]:
        """Return the rows of some keys, of those that have one."""
        self._follow()
        known = ChainMap(self._places, self._removed)
        places = {key: known[key] for key in keys if key in known}
        rows = {key: self._row(*place) for key, place in sorted(places.items(), key=lambda each: each[1])}
        return {key: row for key, row in rows.items() if row is not None}

    def _follow(self) -> None:
        """Take in what was appended since."""
        end = self._log.resolve(self._topic, "latest")
        for batch in self._log.read(self._topic, None, self._next, end, meta=True):
            self._note(batch)
        self._next = end

    def _note(self, batch: pa.RecordBatch) -> None:
        names = key_bytes([batch.column(name) for name in self._key]).to_pylist()
        deleted = batch.column(DELETED).to_numpy(zero_copy_only=False)
        kept = ~deleted & (_sizes(batch) > LARGE)
        places = zip(batch.column("_partition").to_pylist(), batch.column("_offset").to_pylist(), strict=True)
        removed: tuple[int, int] | None = None
        for name, place, keep in zip(names, places, kept.tolist(), strict=True):  # each key has one place
            removed = self._places.pop(name, None)
            if keep:
                self._places[name] = place
        if names:
            self._removed = {names[-1]: removed} if removed is not None and deleted[-1] else {}

    def _row(self, partition: int, offset: int) -> Mapping[str, Any] | None:
        start, end = (Position(self._topic, {partition: at}, self._next.id) for at in (offset, offset + 1))
        rows = [
            row for batch in self._log.read(self._topic, partition, start, end) for row in batch.to_pylist()
        ]
        return rows[0] if rows else None  # compaction may have taken one that was deleted


def _sizes(batch: pa.RecordBatch) -> Any:
    """Return about how many bytes the values of each row have that a database may keep apart."""
    sizes = np.zeros(len(batch), np.int64)
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name.startswith("_"):
            continue
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            sizes += pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False)
        elif pa.types.is_nested(column.type):
            sizes += LARGE + 1
    return sizes
