"""The triggers that write what happens to a table into the outbox, within the application's own
transactions.

What they write is not what a statement meant to do but what the table then holds: after each row that is
written, the row of its key is read again and copied, or its absence noted. An application may have triggers
of its own, which run before or after these and change the same row; the last word on a key is right in any
order.

**Rows that are replaced.** ``INSERT OR REPLACE`` and its like remove rows without a word: SQLite runs
triggers for them only where a connection has asked for ``recursive_triggers``. A row of the same key needs
none, the new one takes its place. For the others, which had something else in common with the new one, a
trigger looks *before* each row is written for rows that are in its way and puts them aside; the one *after*
it tells of those that are then gone. Statements that fail, ignore the row or update instead leave the rows
there, and nothing is told. Such triggers are made for tables with unique constraints beside their key alone.
One thing is left to the reader: a row whose update takes away, by a foreign key that cascades, the row
itself. No trigger runs after it, so the rows that were put aside are looked through when the outbox is read
(``Installation.tell``).

Invariant: a statement that would have succeeded without the triggers does so with them, whichever version of
SQLite the application has: no function or syntax of the last years is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headwater.capture.change import DELETE, INSERT, READ, TRUNCATE, UPDATE
from headwater.capture.sqlite.catalog import BINARY, ROW_NUMBERS, SqliteTable, Term, Unique
from headwater.capture.sqlite.object_names import ObjectNames, quoted

NOW = "CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)"
"""Milliseconds since 1970, the finest that SQLite has; ``unixepoch`` is missing in older versions."""
_MANY = 1000


def value_columns(count: int) -> list[str]:
    """Return the names of the outbox's first columns for values."""
    return [f"c{number}" for number in range(count)]


@dataclass(frozen=True)
class Triggers:
    """The SQL for one form of a table, which has a number in the outbox."""

    names: ObjectNames
    shape: SqliteTable
    source: int

    def statements(self) -> dict[str, str]:
        """Return the statements that make the triggers, by the triggers' names."""
        made = {
            "insert": ("AFTER INSERT", [*self._gone(), *self._written(str(INSERT), [])]),
            "update": ("AFTER UPDATE", self._after_update()),
            "delete": ("AFTER DELETE", [self._absent(), *self._forgotten()]),
        }
        if self.shape.uniques:
            before = [*(self._gone() if self.shape.cascades else []), self._emptied(), *self._aside("NEW")]
            made["before_insert"] = ("BEFORE INSERT", before)
            made["before_update"] = ("BEFORE UPDATE", self._aside("OLD"))
        names = {event: self.names.trigger(self.source, event) for event in made}
        return {names[event]: self._trigger(names[event], *made[event]) for event in made}

    def told_again(self, since: int, former: int) -> str:
        """Return a statement that tells again of rows whose changes came behind an id, by a former number."""
        columns = [f"r.{name}" for name in self._key_columns]
        changed = (
            f"SELECT DISTINCT {', '.join(columns)} FROM {self.names.outbox} AS r "  # noqa: S608  # ours
            f"WHERE r.id > {since} AND r.source = {former}"
        )
        rows = f"FROM ({changed}) AS r CROSS JOIN {self._table} WHERE {self._same(columns)}"
        return self._record(str(UPDATE), self._of(self._table), rows)

    def everything(self) -> list[str]:
        """Return the statements that tell of a table as if it had been emptied and filled."""
        order = ", ".join(self._of(self._table, self.shape.table.key))
        rows = f"FROM {self._table} ORDER BY {order}"
        return [self._record(str(TRUNCATE), [], ""), self._record(str(READ), self._of(self._table), rows)]

    def untold(self) -> str:
        """Return a query for rows that were put aside and are gone, or for too many that are not."""
        replaced = self.names.replaced
        some = f"SELECT 1 FROM {replaced} WHERE {self._is_gone()}"  # noqa: S608  # ours
        return f"SELECT EXISTS ({some}) OR (SELECT count(*) > {_MANY} FROM {replaced})"  # noqa: S608

    def tell(self) -> list[str]:
        """Return the statements that tell of those which are gone, and forget all."""
        return [*self._gone(), self._emptied()]

    def checks(self) -> list[str]:
        """Return statements that SQLite refuses to explain if one of the triggers is wrong."""
        writable = [quoted(each.name) for each in self.shape.table.columns if not each.generated]
        same = ", ".join(f"{name} = {name}" for name in writable)
        return [
            f"EXPLAIN INSERT INTO {self._table} DEFAULT VALUES",
            f"EXPLAIN UPDATE {self._table} SET {same}",  # noqa: S608  # names, quoted
            f"EXPLAIN DELETE FROM {self._table}",  # noqa: S608
        ]

    def _trigger(self, name: str, event: str, body: Sequence[str]) -> str:
        when = self._when(event)
        condition = f" WHEN {when}" if when else ""
        lines = "".join(f"\n  {statement};" for statement in body)
        return f"CREATE TRIGGER {quoted(name)} {event} ON {self._table}{condition} BEGIN{lines}\nEND"

    # After a row was written

    def _written(self, operation: str, before: Sequence[str]) -> list[str]:
        """Tell what the table holds for the key of the new row."""
        rows = f"FROM {self._table} WHERE {self._same(self._of('NEW', self.shape.table.key))}"
        told = [self._record(operation, [*self._of(self._table), *before], rows)]
        if self.shape.nullable_key:  # such a row cannot be looked up, nor stored: it is told to be refused
            told.append(self._record(operation, self._of("NEW"), f"WHERE {self._null('NEW')}"))
        return told

    def _after_update(self) -> list[str]:
        """Tell that a key which a row had is gone, and what the table holds for the one that it has."""
        changed = self._changed_key()
        operation = f"CASE WHEN {changed} THEN {INSERT} ELSE {UPDATE} END"
        gone = [*self._forgotten(f" AND ({changed})"), *self._gone(), self._absent(f"({changed}) AND ")]
        return [*gone, *self._written(operation, self._of("OLD"))]

    def _absent(self, condition: str = "") -> str:
        """Tell that the table holds nothing for the key of the old row."""
        key = self._of("OLD", self.shape.table.key)
        known = f" AND NOT ({self._null('OLD')})" if self.shape.nullable_key else ""
        return self._record(str(DELETE), self._of("OLD"), f"WHERE {condition}{self._missing(key)}{known}")

    def _gone(self) -> list[str]:
        """Tell of the rows that were put aside, and are no longer there."""
        if not self.shape.uniques:
            return []
        replaced = self.names.replaced
        values = [f"{replaced}.{name}" for name in value_columns(len(self.shape.table.columns))]
        condition = f"WHERE {self._is_gone()}"
        # Distinct, for a row can be in the way for two reasons.
        once = f"FROM (SELECT DISTINCT * FROM {replaced}) AS {replaced}"  # noqa: S608  # ours
        return [
            self._record(str(DELETE), values, f"{once} {condition}"),
            f"DELETE FROM {replaced} {condition}",  # noqa: S608  # ours
        ]

    def _is_gone(self) -> str:
        key = [f"{self.names.replaced}.{name}" for name in self._key_columns]
        return f"{self.names.replaced}.source = {self.source} AND {self._missing(key)}"

    def _forgotten(self, condition: str = "") -> list[str]:
        """Forget a row that was put aside: what became of it is told by itself."""
        if not self.shape.uniques:
            return []
        old = self._of("OLD", self.shape.table.key)
        same = " AND ".join(f"{name} IS {value}" for name, value in zip(self._key_columns, old, strict=True))
        return [f"{self._emptied()} AND {same}{condition}"]

    # Before a row is written

    def _emptied(self) -> str:
        """Forget what another statement has put aside: it is over."""
        return f"DELETE FROM {self.names.replaced} WHERE source = {self.source}"  # noqa: S608  # ours

    def _aside(self, itself: str) -> list[str]:
        """Put aside the rows that have something in common with the new one, but the one that it is."""
        same = self._same(self._of(itself, self.shape.table.key))
        columns = value_columns(len(self.shape.table.columns))
        return [
            f"INSERT INTO {self.names.replaced} (source, {', '.join(columns)}) "  # noqa: S608  # ours
            f"SELECT {self.source}, {', '.join(self._of(self._table))} FROM {self._table} "
            f"WHERE {self._in_common(unique)} AND ({same}) IS NOT 1"
            for unique in self.shape.uniques
        ]

    def _in_common(self, unique: Unique) -> str:
        equal = " AND ".join(f"{term.sql} = {self._new(term)}" for term in unique.terms)
        return f"{equal} AND ({unique.where})" if unique.where else equal

    def _new(self, term: Term) -> str:
        """Return what a term is of the row that is about to be written."""
        if term.column is None:
            return f"(SELECT {term.sql} FROM {self._new_row()})"  # noqa: S608  # its own index
        value = f"NEW.{term.column}"
        return value if term.default is None else f"coalesce({value}, {term.default})"

    def _new_row(self) -> str:
        """Return the row that is about to be written as if it were the table, with its generated columns.

        NEW has what these were before. They may be computed from each other: as often as there are some.
        """
        values = [f"NEW.{quoted(name)} AS {quoted(name)}" for name in self._names]
        row = f"(SELECT {', '.join(values)}) AS {self._table}"
        computed = [
            f"{self.shape.generated.get(name, quoted(name))} AS {quoted(name)}" for name in self._names
        ]
        for _ in self.shape.generated:
            row = f"(SELECT {', '.join(computed)} FROM {row}) AS {self._table}"  # noqa: S608
        return row

    def _when(self, event: str) -> str | None:
        """Return when a trigger has anything to do, where that is known."""
        columns = [term.column for unique in self.shape.uniques for term in unique.terms]
        if event == "BEFORE UPDATE" and None not in columns:
            return " OR ".join(f"NEW.{name} IS NOT OLD.{name}" for name in dict.fromkeys(columns))
        numbers_only = event == "BEFORE INSERT" and len(columns) == 1 and columns[0] in ROW_NUMBERS
        return f"NEW.{columns[0]} <> -1" if numbers_only else None  # so SQLite calls one that is not given

    # Parts

    @property
    def _table(self) -> str:
        return quoted(self.shape.table.name)

    @property
    def _names(self) -> list[str]:
        return [each.name for each in self.shape.table.columns]

    @property
    def _key_columns(self) -> list[str]:
        """The outbox's columns that hold the key."""
        return [f"c{self._names.index(name)}" for name in self.shape.table.key]

    def _of(self, row: str, names: Sequence[str] | None = None) -> list[str]:
        return [f"{row}.{quoted(name)}" for name in (self._names if names is None else names)]

    def _record(self, operation: str, values: Sequence[str], rows: str) -> str:
        columns = ["source", "operation", "at", *value_columns(len(values))]
        chosen = [str(self.source), operation, NOW, *values]
        return f"INSERT INTO {self.names.outbox} ({', '.join(columns)}) SELECT {', '.join(chosen)} {rows}"

    def _same(self, key: Sequence[str]) -> str:
        """Return a condition for the row of a key; a key that takes 'a' for 'A' must be that very one."""
        own = self._of(self._table, self.shape.table.key)
        binary = [f"{one} COLLATE BINARY = {other}" for one, other in zip(own, key, strict=True)]
        found = [
            f"{one} COLLATE {quoted(collation)} = {other}"
            for one, other, collation in zip(own, key, self.shape.collations, strict=True)
            if collation != BINARY
        ]
        return " AND ".join([*found, *binary])

    def _missing(self, key: Sequence[str]) -> str:
        return f"NOT EXISTS (SELECT 1 FROM {self._table} WHERE {self._same(key)})"  # noqa: S608  # quoted

    def _changed_key(self) -> str:
        key = self.shape.table.key
        pairs = zip(self._of("OLD", key), self._of("NEW", key), strict=True)
        return " OR ".join(f"{old} COLLATE BINARY IS NOT {new}" for old, new in pairs)

    def _null(self, row: str) -> str:
        return " OR ".join(f"{name} IS NULL" for name in self._of(row, self.shape.table.key))
