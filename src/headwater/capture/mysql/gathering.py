"""Events of the binlog become transactions and runs of rows, until a delivery is made of them.

A transaction begins with its GTID, by which its position is known before its end. It ends with an event of
its own, or, if it is a single statement, with that. Invariant: changes of a transaction are numbered from 0
through all tables that are captured; what may have changed rows of those and does not tell how is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
from pymysqlreplication.event import (
    GtidEvent,
    MariadbGtidEvent,
    NotImplementedEvent,
    QueryEvent,
    XAPrepareEvent,
    XidEvent,
)
from pymysqlreplication.row_event import DeleteRowsEvent, PartialUpdateRowsEvent, RowsEvent, UpdateRowsEvent

from headwater.capture.change import DELETE, INSERT, UPDATE, Transactions
from headwater.capture.mysql.catalog import MySqlTable
from headwater.capture.mysql.failures import ANEW
from headwater.capture.mysql.gtids import Gtids
from headwater.capture.mysql.row_changes import RowRun
from headwater.capture.mysql.statements import BinlogStatement, Meaning, understand
from headwater.errors import SourceRefused

MOST_ROWS: Final = 10_000
"""A delivery ends with the event that has made it so many."""
_STANDALONE, _PREPARED = 1, 64
"""Flags of MariaDB: a statement that is a transaction by itself; one that is to be committed later."""
_UNREADABLE: Final = {26, 40, 42, *range(165, 172)}
"""Events that have lost others, that are compressed, and GTIDs with tags."""


@dataclass(frozen=True)
class EmptiedTables:
    """Tables that one statement has emptied."""

    tables: tuple[MySqlTable, ...]
    transaction: int
    index: int


@dataclass
class BinlogTransaction:
    """A transaction whose end has not come yet."""

    gtid: str
    gtids: Gtids
    """Everything until its end."""
    committed: int
    grouped: bool
    """Whether it has an end of its own."""
    prepared: bool = False
    changes: int = 0
    """How many there have been until now."""


Part: TypeAlias = RowRun | EmptiedTables
Find: TypeAlias = Callable[[str, Any], MySqlTable]
"""Returns a table by its name and the columns that the binlog has, or none if it only has the name."""


@dataclass
class Gathered:
    """What a delivery is made of."""

    parts: list[Part] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    positions: list[str] = field(default_factory=list)
    committed: list[int] = field(default_factory=list)
    rows: int = 0
    _runs: dict[str, RowRun] = field(default_factory=dict)

    @property
    def transactions(self) -> Transactions:
        """The transactions of it that have changes."""
        return Transactions(tuple(self.ids), tuple(self.positions), np.array(self.committed, np.int64))

    def number(self, transaction: BinlogTransaction) -> int:
        """Return the number of a transaction in it, which is the last one."""
        if not self.ids or self.ids[-1] != transaction.gtid:
            self.ids.append(transaction.gtid)
            self.positions.append(str(transaction.gtids))
            self.committed.append(transaction.committed)
        return len(self.ids) - 1

    def run(self, table: MySqlTable) -> RowRun:
        """Return where changes of a table go: together, until something else has to stand between them."""
        run = self._runs.get(table.table.name)
        if run is None or run.table is not table:
            run = self._runs[table.table.name] = RowRun(table)
            self.parts.append(run)
        return run

    def emptied(self, part: EmptiedTables) -> None:
        """Put a truncation behind everything until now."""
        self.parts.append(part)
        self._runs.clear()

    def altered(self) -> None:
        """Let what comes stand behind everything until now."""
        self._runs.clear()


class Gathering:
    """Takes in events, one after the other."""

    def __init__(self, database: str, tables: Mapping[str, Gtids | None], find: Find):
        self._database, self._find = database, find
        self._since = dict(tables)
        """The tables, and of those that came later the transactions that were before them."""
        self._names = re.compile(
            r"(?<![\w$])(?:" + "|".join(map(re.escape, tables)) + r")(?![\w$])", re.IGNORECASE
        )
        self.gathered = Gathered()
        self.open: BinlogTransaction | None = None
        self.altered = False
        """Whether tables may be other ones since the last time it was looked at."""

    def begin(self, gtids: Gtids, skip: int = 0) -> None:
        """Begin behind some transactions, and leave out changes of the next one that were delivered."""
        self.gtids, self._skip = gtids, skip
        self.gathered, self.open = Gathered(), None

    def take(self, event: Any) -> bool:
        """Take in an event; tell whether a transaction has ended with it."""
        if isinstance(event, GtidEvent | MariadbGtidEvent):
            self._begin(event)
        elif isinstance(event, NotImplementedEvent | PartialUpdateRowsEvent):
            self._check_readable(event)
        elif isinstance(event, RowsEvent):
            self._rows(event)
        elif isinstance(event, XidEvent | XAPrepareEvent):
            return self._end()
        elif isinstance(event, QueryEvent):
            return self._statement(event)
        return False

    def taken(self) -> Gathered:
        """Return what was gathered, and begin anew behind it."""
        found, self.gathered = self.gathered, Gathered()
        return found

    def _begin(self, event: Any) -> None:
        flags = event.flags if isinstance(event, MariadbGtidEvent) else _STANDALONE
        self.open = BinlogTransaction(
            event.gtid,
            self.gtids.with_gtid(event.gtid),
            event.timestamp * 1_000_000,
            grouped=not flags & _STANDALONE,
            prepared=bool(flags & _PREPARED),
        )

    def _end(self) -> bool:
        if self.open is None:
            return False
        self.gtids, self.open, self._skip = self.open.gtids, None, 0
        return True

    def _check_readable(self, event: Any) -> None:
        if event.event_type in _UNREADABLE or isinstance(event, PartialUpdateRowsEvent):
            raise _untold(
                f"the binlog has an event of type {event.event_type}, which is not read here",
                "switch compression and partial values of the binlog off",
            )

    # Rows

    def _rows(self, event: Any) -> None:
        transaction = self._opened()
        if transaction.prepared:
            raise _untold(
                f"a distributed transaction (XA) has changed table {event.table}, and may be undone",
                "change captured tables in transactions of their own",
            )
        _check_whole(event)
        left_out = self._left_out(event.table, transaction)
        rows, first = event.rows, transaction.changes
        transaction.changes += len(rows)
        delivered = min(max(self._skip - first, 0), len(rows))
        if left_out or delivered == len(rows):
            return
        run = self.gathered.run(self._find(event.table, event.columns))
        run.add(_operation(event), rows[delivered:], self.gathered.number(transaction), first + delivered)
        self.gathered.rows += len(rows) - delivered

    def _left_out(self, table: str, transaction: BinlogTransaction) -> bool:
        since = self._since.get(table)
        return table not in self._since or (since is not None and since.covers(transaction.gtids))

    def _opened(self) -> BinlogTransaction:
        if self.open is None:
            raise _untold(
                "the binlog has changes without a GTID", "let the server give every transaction one"
            )
        return self.open

    # Statements

    def _statement(self, event: Any) -> bool:
        statement = understand(event.query)
        schema = event.schema.decode("utf-8", "replace")
        transaction = self.open
        if transaction is None:
            return False
        if statement.meaning is Meaning.BEGIN or (
            statement.meaning is Meaning.PREPARED and event.query.upper().startswith("XA START")
        ):
            transaction.grouped, transaction.prepared = True, statement.meaning is Meaning.PREPARED
            return False
        self._note(statement, schema, event.query)
        ended = not transaction.grouped or statement.meaning in (Meaning.COMMIT, Meaning.ROLLBACK)
        return self._end() if ended else False

    def _note(self, statement: BinlogStatement, schema: str, query: str) -> None:
        meaning = statement.meaning
        if meaning in (Meaning.EMPTIED, Meaning.SCHEMA, Meaning.PARTITION):
            self.altered = True
            self.gathered.altered()
        if meaning is Meaning.EMPTIED:
            self._empty(self._captured(statement, schema))
        elif meaning is Meaning.PARTITION and self._captured(statement, schema):
            raise _untold("rows have come or gone with a partition of a captured table", ANEW)
        elif meaning is Meaning.ROWS and self._names.search(query):
            raise _untold(
                "a captured table was changed by a statement that is in the binlog as text: "
                f"{query.split(None, 3)[:3]}",
                "let no connection set binlog_format to anything but ROW",
            )
        elif meaning in (Meaning.ROLLBACK, Meaning.UNDONE) and self._opened().changes:
            raise _untold(
                "a transaction was rolled back and is in the binlog: it changed tables without transactions",
                "keep captured tables apart from those of engines without transactions",
            )

    def _captured(self, statement: BinlogStatement, schema: str) -> list[str]:
        """Return the captured tables that a statement is about."""
        found: list[str] = []
        for database, name in statement.tables:
            if (schema if database is None else database) == self._database:
                found += [each for each in self._since if name in (None, each)]
        return found

    def _empty(self, names: list[str]) -> None:
        transaction = self._opened()
        tables = [self._find(each, None) for each in names if not self._left_out(each, transaction)]
        index = transaction.changes
        transaction.changes += bool(names)
        if tables and index >= self._skip:
            part = EmptiedTables(tuple(tables), self.gathered.number(transaction), index)
            self.gathered.emptied(part)
            self.gathered.rows += 1


def _operation(event: Any) -> int:
    if isinstance(event, UpdateRowsEvent):
        return UPDATE
    return DELETE if isinstance(event, DeleteRowsEvent) else INSERT


def _check_whole(event: Any) -> None:
    """Refuse rows of which only some columns were written."""
    whole = (1 << event.number_of_columns) - 1
    for bitmap in (event.columns_present_bitmap, getattr(event, "columns_present_bitmap2", None)):
        if bitmap is not None and int.from_bytes(bitmap, "little") & whole != whole:
            raise _untold(
                f"a change of table {event.table} has only parts of its rows",
                "let no connection set binlog_row_image to anything but FULL",
            )
    if not all(each.name for each in event.columns):
        raise _untold(
            f"a change of table {event.table} has no names of columns", "set binlog_row_metadata to FULL"
        )


def _untold(detail: str, remedy: str) -> SourceRefused:
    hint = remedy if remedy == ANEW else f"{remedy}, then {ANEW}"
    return SourceRefused("the binlog does not tell every change", detail=detail, hint=hint)
