"""The sink of a table in MySQL or MariaDB: one commit is one transaction of the server.

Invariant: the rows of a batch, its number, positions and clock are committed together, by the runner with the
newest epoch only; a commit whose answer was lost is recognised by its number; and no row is written to a
table that another version has taken the name of.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import islice

import pyarrow as pa

from headwater import durations
from headwater.errors import UsageError
from headwater.sinks import crash
from headwater.sinks.fencing import dropped, taken_over
from headwater.sinks.mysql import catalog, statements
from headwater.sinks.mysql.catalog import TableProgress
from headwater.sinks.mysql.statements import TableStatements
from headwater.sinks.sink import Batch, Contents, NumberedSink
from headwater.stores import limits
from headwater.stores.mysql import address, columns
from headwater.stores.mysql.connection import MySqlTransactions, Transaction
from headwater.values.fitting import Fitted
from headwater.values.keyed import declare, settle

_BEGIN_SECONDS = 5.0
"""How long a beginning waits for the server: its runner has other nodes to mind, and tries again."""
_ROWS, _KEYS = 8192, 1000


class MySqlSink(NumberedSink):
    """Keeps a table of a node's results by key, in MySQL or MariaDB.

    The table is made if it is not there; one that is needs the columns, and no other unique key than the
    sink's. Of several rows with one key the last counts; ``_deleted`` deletes it. How far it has got is in
    the table ``headwater_sinks``. When the connection breaks, or the server restarts, the commit is repeated
    for up to ``retry_timeout``.
    """

    def __init__(
        self,
        url: str,
        table: str,
        schema: str | pa.Schema,
        key: str | tuple[str, ...],
        *,
        version: int = 1,
        retry_timeout: str | timedelta = "1 minute",
    ):
        self._keyed = declare(f'table "{table}"', schema, key)
        limits.check_mysql(table, self._keyed)
        self._table, self._version, self._address = table, version, address.parse(url)
        seconds = durations.interval(retry_timeout).total_seconds()
        self._connection = MySqlTransactions(self._address, self._keyed.what, seconds)
        self._epoch: int | None = None

    def begin(self) -> int:
        """Take over from any other runner; return the number of the last batch committed, or -1."""
        self._connection.run(
            lambda db: catalog.ready(db, self._table, self._version, self._keyed), _BEGIN_SECONDS
        )
        reached = self._connection.run(self._take_over, _BEGIN_SECONDS)
        crash.point("mysql: begun")
        self._epoch, self._last = reached.epoch + 1, reached.batch
        return self._last

    def commit(self, batch: Batch) -> bool:
        """Make a batch visible, whole; return False if it was there before."""
        if self._epoch is None:
            raise UsageError(f"sink of {self._keyed.what} has not begun", hint="call begin() first")
        settled = settle(batch.rows, self._keyed)

        def store(db: Transaction) -> bool:
            return self._store(db, settled, batch)

        done = self._commit_once(self._connection.run, store, batch.number)
        crash.point("mysql: committed")
        return done

    def read_back(self) -> Contents:
        """Return the rows of the table."""
        reading = MySqlTransactions(self._address, self._keyed.what, _BEGIN_SECONDS)
        try:
            db = reading.begin()
            there = catalog.versions(db, self._table)
            table = catalog.table_of(there, self._table, self._version)
            known = "headwater_sinks" in catalog.versions(db, "headwater_sinks") and table in there
            reached = catalog.find(db, self._table, self._version, self._keyed) if known else None
        except BaseException:
            reading.close()
            raise
        if reached is None:
            reading.close()
            return Contents()
        return Contents(reached.batch, self._rows(reading, db, table))

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _rows(self, reading: MySqlTransactions, db: Transaction, table: str) -> Iterator[pa.RecordBatch]:
        try:
            cursor = db.stream(TableStatements(table, self._keyed).all)
            while rows := cursor.fetchmany(_ROWS):
                yield columns.to_batch(rows, self._keyed.schema)
        finally:
            reading.close()

    def _take_over(self, db: Transaction) -> TableProgress:
        reached = catalog.find(db, self._table, self._version, self._keyed, lock=True)
        if reached is None:
            raise dropped(self._keyed.what, self._version)
        db.rows(statements.TAKE_OVER, (self._table, self._version))
        return reached

    def _store(self, db: Transaction, settled: Fitted, batch: Batch) -> bool:
        reached = catalog.find(db, self._table, self._version, self._keyed, lock=True)
        if reached is None:
            raise dropped(self._keyed.what, self._version)
        if reached.epoch != self._epoch:
            raise taken_over(self._keyed.what)
        self._last = reached.batch
        if batch.number <= reached.batch:
            return False
        filled = self._write(db, settled) if len(settled) else reached.filled
        crash.point("mysql: rows stored")
        positions = "\n".join(map(str, batch.positions))
        progress = (batch.number, positions, batch.watermark, filled)
        db.rows(statements.SAVE_PROGRESS, (*progress, self._table, self._version))
        crash.point("mysql: before commit")
        return True

    def _write(self, db: Transaction, settled: Fitted) -> bool:
        """Write rows and deletions, and tell whether the table has rows then."""
        sql = TableStatements(self._held(db), self._keyed)
        kept, gone = pa.array(~settled.deleted), pa.array(settled.deleted)
        living = settled.rows.filter(kept)
        if len(living):
            db.many(sql.upsert, list(columns.to_rows(living, self._keyed)))
        crash.point("mysql: rows put")
        keys = columns.to_rows(settled.rows.filter(gone), self._keyed)
        at = [self._keyed.schema.names.index(name) for name in self._keyed.key]
        while part := list(islice(keys, _KEYS)):
            db.rows(sql.delete(len(part)), [row[place] for row in part for place in at])
        return bool(len(living)) or bool(db.rows(sql.any)[0][0])

    def _held(self, db: Transaction) -> str:
        """Return the table of the version, which nobody renames until the end of the transaction."""
        table = catalog.table_of(catalog.versions(db, self._table), self._table, self._version)
        db.rows(TableStatements(table, self._keyed).hold)
        if catalog.table_of(catalog.versions(db, self._table), self._table, self._version) != table:
            raise dropped(self._keyed.what, self._version)  # it was renamed just before it was held
        return table
