"""The sink of a directory of Parquet files.

A commit writes one file, whole and under a name nobody looks at, and then a manifest that lists it.
Invariant: the manifest changes only under the directory's lock, by the runner that began last.
"""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa

from headwater import durable, durations
from headwater import schema as schemas
from headwater.errors import UsageError
from headwater.record import DELETED
from headwater.sinks import crash
from headwater.sinks.parquet import files, manifest, merge
from headwater.sinks.parquet.manifest import File, Manifest
from headwater.sinks.sink import Batch, NumberedSink
from headwater.stores import disk
from headwater.values.fitting import Fitted, fit, shaped


class ParquetSink(NumberedSink):
    """Writes each batch's rows to a directory, in files that the manifest lists.

    Every row is kept, in the order of the batches; a column ``_deleted`` is written as it is. Read
    with ``headwater.sinks.parquet.read`` or ``dataset``: other files that lie there may be of a
    batch that was never committed. Small files are merged now and then; those they replace stay for
    ``keep``, for readers that have begun with them. A commit is durable when it returns.

    >>> import tempfile
    >>> directory = tempfile.mkdtemp()
    >>> rows = pa.table({"id": [1, 2]})
    >>> for attempt in (1, 2):
    ...     with ParquetSink(directory, "id BIGINT") as sink:
    ...         print(sink.begin(), sink.commit(Batch(0, rows)))
    -1 True
    0 False
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        schema: str | pa.Schema,
        *,
        keep: str | timedelta = "10 minutes",
    ):
        self._directory = Path(directory)
        self._shape = shaped(f'directory "{self._directory}"', schema)
        self._keep = durations.interval(keep).total_seconds()
        self._epoch: int | None = None

    def begin(self) -> int:
        """Take over from any other runner; return the number of the last batch committed, or -1."""
        try:
            durable.make(self._directory)
            with manifest.locked(self._directory):
                begun = manifest.begun(self._directory, schemas.ddl(self._shape.schema))
                # With the lock held: what is not listed now is of a runner that is shut out.
                files.tidy(self._directory, begun)
                files.check(self._directory, begun)
            self._epoch, self._last = begun.epoch, begun.batch
        except OSError as error:
            raise disk.sink_error(error, self._shape.what) from error
        crash.point("parquet: begun")
        return begun.batch

    def commit(self, batch: Batch) -> bool:
        """Make a batch visible, whole; return False if it was there before."""
        if self._epoch is None:
            raise UsageError(f"sink of {self._shape.what} has not begun", hint="call begin() first")
        rows = _with_deletions(fit(batch.rows, self._shape), batch)
        try:
            if batch.number <= manifest.current(self._directory, self._epoch).batch:
                return False
            new_files = self._write(rows, batch.number)
            self._list(new_files, batch, self._epoch)
            self._last = batch.number
            crash.point("parquet: listed")
            merge.merge(self._directory, self._epoch, self._keep)
        except OSError as error:
            raise disk.sink_error(error, self._shape.what) from error
        return True

    def close(self) -> None:
        """Nothing to release."""

    def _write(self, rows: pa.RecordBatch, number: int) -> tuple[File, ...]:
        if not len(rows):
            return ()
        return (files.write(self._directory, f"{number:012d}", [rows], rows.schema, tier=0),)

    def _list(self, new_files: tuple[File, ...], batch: Batch, epoch: int) -> None:
        with manifest.locked(self._directory):
            listed = manifest.current(self._directory, epoch)
            manifest.store(self._directory, _with(listed, new_files, batch))


def _with(listed: Manifest, new_files: tuple[File, ...], batch: Batch) -> Manifest:
    return replace(
        listed,
        batch=batch.number,
        positions=batch.positions,
        clock=batch.watermark,
        deletions=listed.deletions or (bool(new_files) and DELETED in batch.rows.schema.names),
        files=listed.files + new_files,
    )


def _with_deletions(fitted: Fitted, batch: Batch) -> pa.RecordBatch:
    if DELETED not in batch.rows.schema.names or not len(fitted):
        return fitted.rows
    return fitted.rows.append_column(DELETED, pa.array(fitted.deleted))
