"""The sink of a Delta Lake table: a batch is one commit to its log.

Delta keeps, with each commit, numbers that an application gives (``txn``): ours are epoch, batch and time.
Invariant: rows, batch number, epoch and positions are in one commit, or none is; a commit is made only on the
version of the table that was looked at, so a runner that was replaced meanwhile commits nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
import pyarrow as pa

from headwater import durable, durations
from headwater.errors import SchemaError, SinkRefused, SinkUnavailable, UsageError
from headwater.sinks import crash
from headwater.sinks.fencing import dropped, taken_over
from headwater.sinks.sink import Batch, Contents, NumberedSink
from headwater.sinks.warehouse.declaration import CURRENT, declare_warehouse
from headwater.stores import disk
from headwater.values.fitting import Fitted
from headwater.values.keyed import settle

try:
    from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
    from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

    from headwater.sinks.warehouse import changes
except ModuleNotFoundError as error:
    if (error.name or "").split(".")[0] != "deltalake":
        raise
    raise UsageError(
        "support for Delta Lake is not installed", hint="run `pip install 'headwater[warehouse]'`"
    ) from None

COMPACT = 64
"""Batches after which small files become larger ones."""
_TRIES = 20
_EPOCH, _BATCH, _TIME = "headwater.epoch", "headwater.batch", "headwater.time"
_VERSION = "headwater.version"


class WarehouseSink(NumberedSink):
    """Keeps the rows of a node in a Delta Lake table, by key, and with ``history`` what they were before.

    With a history (SCD type 2) each version of a row has ``valid_from``, ``valid_to`` and ``is_current``: the
    times when the batches were committed that brought and ended it, which always grow. A key that changes
    several times in one batch has one version of it; a row that comes again as it is has none. Without, the
    table has the current rows alone.

    A batch is one commit: rows, number, epoch and positions. It is durable when ``commit`` returns.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        schema: str | pa.Schema,
        key: str | tuple[str, ...],
        *,
        history: bool = True,
        version: int = 1,
    ):
        self._directory, self._version = Path(directory), version
        self._declared = declare_warehouse(f'table "{self._directory}"', schema, key, history)
        self._table: DeltaTable | None = None
        self._epoch: int | None = None

    def begin(self) -> int:
        """Take over from any other runner; return the number of the last batch committed, or -1."""
        with _translated_errors(self._declared.what):
            durable.make(self._directory)
            for _ in range(_TRIES):
                table = self._opened()
                epoch = self._checked(table) + 1
                if self._commit(table, None, {_EPOCH: epoch, _VERSION: self._version}):
                    break
            else:
                raise SinkRefused(f"other runners keep taking over {self._declared.what}")
        crash.point("warehouse: begun")
        self._table, self._epoch = table, epoch
        self._last = _number(table, _BATCH, -1)
        return self._last

    def commit(self, batch: Batch) -> bool:
        """Make a batch visible, whole; return False if it was there before."""
        if self._table is None:
            raise UsageError(f"sink of {self._declared.what} has not begun", hint="call begin() first")
        settled = settle(batch.rows, self._declared)
        with _translated_errors(self._declared.what):
            for _ in range(_TRIES):
                if self._is_committed(self._table, batch.number):
                    return False
                if self._write(self._table, settled, batch):
                    self._last = batch.number
                    crash.point("warehouse: committed")
                    self._compact(self._table)
                    return True
        raise SinkUnavailable(
            f"somebody else keeps committing to {self._declared.what}",
            hint="let maintenance of the table end",
        )

    def read_back(self) -> Contents:
        """Return the rows that are current."""
        with _translated_errors(self._declared.what):
            if not DeltaTable.is_deltatable(str(self._directory)):
                return Contents()
            table = DeltaTable(self._directory)
            return Contents(_number(table, _BATCH, -1), self._rows(table))

    def replace(self, other: WarehouseSink) -> None:
        """Make the current rows those of another table, in one commit, which also makes its version ours.

        With a history the versions of rows that are no longer current end now, and rows that are the same
        in both go on.
        """
        with _translated_errors(self._declared.what):
            built = DeltaTable(other._directory)
            for _ in range(_TRIES):
                table = self._opened()
                rows = changes.difference(
                    table, list(changes.current(built, other._declared)), self._declared
                )
                at = max(durations.now(), _number(table, _TIME, 0) + 1)
                numbers = {_EPOCH: _number(table, _EPOCH, 0) + 1, _VERSION: other._version, _TIME: at,
                           _BATCH: _number(built, _BATCH, -1)}  # fmt: skip
                if self._commit(table, changes.Changes(rows, at), numbers):
                    return
        raise SinkUnavailable(f"somebody else keeps committing to {self._declared.what}")

    def close(self) -> None:
        """Nothing to release."""

    def _rows(self, table: DeltaTable) -> Iterator[pa.RecordBatch]:
        with _translated_errors(self._declared.what):
            yield from changes.current(table, self._declared)

    def _opened(self) -> DeltaTable:
        try:
            return DeltaTable(self._directory)
        except TableNotFoundError:
            parts = [CURRENT] if self._declared.history else None
            new = CommitProperties(app_transactions=[Transaction(_EPOCH, 0)])
            try:
                DeltaTable.create(
                    self._directory, self._declared.stored, partition_by=parts, commit_properties=new
                )
            except DeltaError:  # another process may have been first
                if not DeltaTable.is_deltatable(str(self._directory)):
                    raise
        crash.point("warehouse: table made")
        return DeltaTable(self._directory)

    def _checked(self, table: DeltaTable) -> int:
        """Return the epoch of a table that is ours, and whole."""
        epoch = table.transaction_version(_EPOCH)
        if epoch is None:
            raise SinkRefused(
                f"{self._declared.what} was not made by Headwater", hint="write to another directory"
            )
        if self._version < _number(table, _VERSION, 1):
            raise dropped(self._declared.what, self._version)
        if table.schema() != Schema.from_arrow(self._declared.stored):
            raise SchemaError(f"{self._declared.what} holds other columns", hint="write to another directory")
        for file in table.file_uris():
            if not Path(file.removeprefix("file://")).exists():
                raise SinkRefused(
                    f'file "{file}" is gone', detail="the table needs it", hint="restore it from a copy"
                )
        return int(epoch)

    def _is_committed(self, table: DeltaTable, number: int) -> bool:
        """Look at the newest version: whose it is, and whether a batch is there."""
        table.update_incremental()
        if _number(table, _VERSION, 1) != self._version:
            raise dropped(self._declared.what, self._version)
        if _number(table, _EPOCH, 0) != self._epoch:
            raise taken_over(self._declared.what)
        return number <= _number(table, _BATCH, -1)

    def _write(self, table: DeltaTable, settled: Fitted, batch: Batch) -> bool:
        at = max(durations.now(), _number(table, _TIME, 0) + 1)  # a clock may be set back
        rows = changes.effective(table, settled, self._declared)
        crash.point("warehouse: compared")
        positions = [str(position) for position in batch.positions]
        about = {"headwater": orjson.dumps({"positions": positions, "clock": batch.watermark}).decode()}
        return self._commit(table, changes.Changes(rows, at), {_BATCH: batch.number, _TIME: at}, about)

    def _commit(
        self,
        table: DeltaTable,
        changed: changes.Changes | None,
        numbers: dict[str, int],
        about: dict[str, str] | None = None,
    ) -> bool:
        """Commit on the version that was looked at; return False if there is a newer one."""
        marks = [Transaction(name, number) for name, number in numbers.items()]
        # Not tried again by the library: it would put our rows upon those of the runner that came after us.
        how = CommitProperties(custom_metadata=about, max_commit_retries=0, app_transactions=marks)
        try:
            if changed is None or not len(changed.rows):
                empty = pa.Table.from_batches([], schema=self._declared.stored)
                write_deltalake(table, empty, mode="append", commit_properties=how)
            else:
                changes.merge(table, changed, self._declared, how)
        except CommitFailedError:
            return False
        crash.point("warehouse: written")
        _sync(self._directory, table)
        return True

    def _compact(self, table: DeltaTable) -> None:
        if self._last % COMPACT == COMPACT - 1:
            try:
                table.optimize.compact(commit_properties=CommitProperties(max_commit_retries=0))
            except CommitFailedError:
                return  # somebody has committed meanwhile; there will be another time
            _sync(self._directory, table)
            crash.point("warehouse: compacted")


def published(directory: Path) -> int:
    """Return the version of its node that a table holds; 1 where there is none."""
    with _translated_errors(f'table "{directory}"'):
        if not DeltaTable.is_deltatable(str(directory)):
            return 1
        return _number(DeltaTable(directory), _VERSION, 1)


def _number(table: DeltaTable, name: str, without: int) -> int:
    found = table.transaction_version(name)
    return without if found is None else int(found)


def _sync(directory: Path, table: DeltaTable) -> None:
    """Bring a commit to the disk, with the files that it names: the library leaves that to the system."""
    entry = directory / "_delta_log" / f"{table.version():020d}.json"
    actions = map(orjson.loads, entry.read_bytes().splitlines())
    files = [directory / action["add"]["path"] for action in actions if "add" in action]
    for path in {*files, entry, entry.parent, *(file.parent for file in files), directory}:
        durable.sync(path)


@contextmanager
def _translated_errors(what: str) -> Iterator[None]:
    """Raise errors of the library and of the disk as our own."""
    try:
        yield
    except OSError as error:
        if error.errno is None and disk.is_full(error):
            raise disk.full(what, str(error)) from None
        raise disk.sink_error(error, what) from error
    except DeltaError as error:
        if disk.is_full(OSError(str(error))):
            raise disk.full(what, str(error)[:200]) from None
        raise SinkUnavailable(f"{what} cannot be used", detail=str(error)[:200]) from None
