"""Whether a captured table is what its database has: compared row by row, while both may go on changing.

All rows of the table are read, then the records of the topic when the capture has passed that moment, those
of later changes left out. A key that differs and was changed since its first rows were read may only have
been changed in between: it is looked at again, and is wrong if it differs when it was not changed; one that
changes each time is undecided, and said to be. What the
topic had before that is older than the rows, wherever its position was: a capture that was begun anew may
have come from positions that are behind those of today. Invariant: nothing is changed, and a table that does
not change is compared exactly.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.bisection import failing
from headwater.capture.change import SnapshotChunk
from headwater.capture.source import CaptureSource
from headwater.capture.state import Offsets, load
from headwater.capture.writing.captured_table import CapturedTable
from headwater.capture.writing.live_rows import newest
from headwater.capture.writing.table_writer import conformed
from headwater.engine.proof.compare import compare_by_key
from headwater.engine.proof.equality import comparable
from headwater.engine.proof.verdict import Row, Verdict
from headwater.errors import RowError, SourceUnavailable
from headwater.log import Log
from headwater.pipeline.declaration import Declaration
from headwater.record import DELETED
from headwater.values.cast import cast
from headwater.values.columns import Misfit

TIMES = 3
CHUNK_ROWS = 50_000
PATIENCE = 30.0
"""How long the capture is waited for, in seconds, before it is said that it is behind."""


class SourceComparison:
    """Compares the tables of one capture."""

    def __init__(self, source: CaptureSource, log: Log, capture: str):
        self._source, self._log, self._capture = source, log, capture

    def verdict(self, node: Declaration, captured: CapturedTable) -> Verdict:
        """Return how a table's topic compares with the table."""
        fields = [captured.schema.field(name) for name in captured.key]
        for _ in range(TIMES):
            known = self._log.resolve(captured.topic, "latest").offsets
            rows, begun, end = self._table(captured)
            stored, since = self._topic(captured, known, begun, end)
            found = compare_by_key(node, rows, stored, captured.schema)
            wrong = {comparable(row, fields) for row in _rows(found)}
            unsure = wrong & {comparable(row, fields) for row in since}
            if not unsure:
                break
        return _only(found, wrong - unsure, len(unsure), fields)

    def _topic(
        self, captured: CapturedTable, known: Offsets, begun: str, end: str
    ) -> tuple[list[Row], list[Row]]:
        """Return the rows of a topic at a position, and the keys of those changed since an earlier one.

        Records before some known offsets are from before both.
        """
        names = [*captured.schema.names, DELETED]
        before, since = list[pa.RecordBatch](), list[Row]()
        for batch in self._log.read(captured.topic, meta=True):
            is_before, was_before = (self._is_before(batch, known, position) for position in (end, begun))
            before.append(batch.select(names).filter(is_before))
            since += batch.select(list(captured.key)).filter(pc.invert(was_before)).to_pylist()
        if not sum(map(len, before)):
            return [], since
        rows = newest(pa.Table.from_batches(before), captured.key)
        return rows.select(captured.schema.names).to_pylist(), since

    def _is_before(self, batch: pa.RecordBatch, known: Offsets, end: str) -> pa.Array:
        """Tell of each record whether its change is not behind a position; one that does not say is not."""
        if not len(batch):
            return pa.array([], pa.bool_())
        positions = pc.map_lookup(batch.column("_headers"), "position", "first").dictionary_encode()
        passed = [self._source.passed(end, each.decode()) for each in positions.dictionary.to_pylist()]
        is_before = pc.fill_null(pa.array(passed, pa.bool_()).take(positions.indices), True)
        first = known.get(batch.column("_partition")[0].as_py(), 0)
        return pc.or_(is_before, pc.less(batch.column("_offset"), first))

    def _table(self, captured: CapturedTable) -> tuple[list[Row], str, str]:
        """Return the rows of a table, and positions behind the first and all that the capture has passed."""
        after, rows, begun = None, list[Row](), ""
        while True:
            chunk = self._source.chunk(captured.table, after, CHUNK_ROWS)
            rows += self._fitting(captured, chunk)
            begun = begun or chunk.end
            if chunk.last:
                self._wait(chunk.end)
                return rows, begun, chunk.end
            after = chunk.after

    def _fitting(self, captured: CapturedTable, chunk: SnapshotChunk) -> list[Row]:
        """Return the rows of a chunk as the topic has them, but for those that it cannot have."""
        topic, rows = self._log.topic(captured.topic), list[Row]()

        def convert(start: int, end: int) -> object | None:
            part = chunk.rows.slice(start, end - start)
            try:
                if any(start <= row < end for row in chunk.unfit):
                    raise RowError("a value does not fit")
                columns = {
                    field.name: cast(conformed(part.column(field.name), field), field.type, field.name, topic)
                    for field in captured.schema
                }
            except (RowError, Misfit, pa.ArrowException) as error:
                return error
            rows.extend(pa.table(columns).to_pylist())
            return None

        deque(failing(len(chunk.rows), convert), maxlen=0)
        return rows

    def _wait(self, position: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            state = load(self._log, self._capture)
            if state is not None and self._source.passed(state.position, position):
                return
            if time.monotonic() > deadline:
                raise SourceUnavailable(
                    f'capture "{self._capture}" is behind its database',
                    detail=f"it is at {state.position if state else 'the beginning'}, not at {position} yet",
                    hint="run the pipeline, and verify it meanwhile or when it has caught up",
                )
            time.sleep(0.1)


def _rows(found: Verdict) -> list[Row]:
    return [*found.missing, *found.extra, *(row for row, _ in found.different)]


def _only(found: Verdict, wrong: set[Any], undecided: int, fields: list[pa.Field]) -> Verdict:
    """Return a verdict in which only some keys are wrong, and some of the others undecided."""

    def is_wrong(row: Row) -> bool:
        return comparable(row, fields) in wrong

    return Verdict(
        found.node,
        found.equal,
        tuple(filter(is_wrong, found.missing)),
        tuple(filter(is_wrong, found.extra)),
        tuple(pair for pair in found.different if is_wrong(pair[0])),
        undecided=undecided,
    )
