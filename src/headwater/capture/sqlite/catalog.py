"""What the tables of an SQLite file are like: columns, keys, and what no two rows may have in common.

Invariant: a table that can be captured is described so far that its triggers can be made from it alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from headwater.capture.change import SourceColumn, SourceTable
from headwater.capture.sqlite.column_types import arrow_type
from headwater.capture.sqlite.connection import Row, SqliteConnection
from headwater.capture.sqlite.index_terms import generated_expressions, index_terms
from headwater.capture.sqlite.object_names import PREFIX, quoted
from headwater.errors import SourceRefused, nearest

BINARY = "BINARY"
_GENERATED = (2, 3)
ROW_NUMBERS = ("rowid", "_rowid_", "oid")
"""The names by which a row's number can be written, unless columns are named so."""


@dataclass(frozen=True)
class Term:
    """A column or an expression of a unique index."""

    sql: str
    """As it is written of a row of the table, with how it is compared."""
    column: str | None
    """The column's name, quoted where it needs to be; None for an expression, and for a generated column."""
    default: str | None = None
    """What SQLite may put in place of a null."""


@dataclass(frozen=True)
class Unique:
    """What no two rows of a table have in common."""

    terms: tuple[Term, ...]
    where: str | None = None


@dataclass(frozen=True)
class SqliteTable:
    """A table, with all that its triggers depend on."""

    table: SourceTable
    collations: tuple[str, ...]
    """How the columns of the key are compared."""
    uniques: tuple[Unique, ...]
    """Beside the key; the key itself too where it takes different values for the same, or ``cascades``."""
    generated: dict[str, str]
    """What generated columns are computed from."""
    cascades: bool
    """Whether a row can go because another does, be it the one that is just being updated."""

    @property
    def constrained(self) -> bool:
        """Whether rows can be in each other's way by something else than their keys or numbers."""
        return any(term.column not in ROW_NUMBERS for unique in self.uniques for term in unique.terms)

    @property
    def nullable_key(self) -> bool:
        """Whether the key may be null, which only SQLite allows."""
        return any(each.nullable for each in self.table.columns if each.name in self.table.key)


def table_names(db: SqliteConnection) -> list[str]:
    """Return the names of the tables that are the application's own."""
    made = "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND sql IS NOT NULL ORDER BY name"
    tables = {name: sql for name, sql in db.rows(made) if not name.startswith((PREFIX, "sqlite_"))}
    virtual = {name for name, sql in tables.items() if sql.upper().startswith("CREATE VIRTUAL")}
    return [name for name in tables if name not in virtual | _shadows(db, set(tables), virtual)]


def _shadows(db: SqliteConnection, names: set[str], virtual: set[str]) -> set[str]:
    """Return the tables in which virtual ones keep their data."""
    kinds = {name: kind for schema, name, kind, *_ in db.rows("PRAGMA table_list") if schema == "main"}
    if kinds:
        return {name for name in names if kinds.get(name) == "shadow"}
    # Before SQLite 3.37 their names have to tell.
    return {name for name in names if name.rpartition("_")[0] in virtual}


def source_table(db: SqliteConnection, name: str) -> SourceTable:
    """Return a table as it is now."""
    return _source_table(db, name, _Indexes(db, name))


def table_shape(db: SqliteConnection, name: str) -> SqliteTable:
    """Return a table that is to be captured, or refuse it."""
    names = table_names(db)
    if name not in names:
        raise SourceRefused(f'{db.title} has no table "{name}"', hint=nearest(name, names))
    indexes = _Indexes(db, name)
    table = _source_table(db, name, indexes)
    if not table.key:
        raise SourceRefused(
            f'table "{name}" of {db.title} has no primary key',
            detail="without one it cannot be said which row a change is of",
            hint="give it a primary key",
        )
    collations = indexes.key_collations(table)
    cascades = any(row[6] == "CASCADE" for row in db.rows(f"PRAGMA foreign_key_list({quoted(name)})"))
    uniques = indexes.uniques(collations) + indexes.row_numbers(table)
    uniques += indexes.keys(table) if cascades else ()
    sql = db.value("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", name)
    generated = generated_expressions(sql, [each.name for each in table.columns])
    return SqliteTable(table, collations, uniques, generated, cascades)


def _source_table(db: SqliteConnection, name: str, indexes: _Indexes) -> SourceTable:
    rows = [row for row in db.rows(f"PRAGMA table_xinfo({quoted(name)})") if row[6] != 1]
    key = tuple(row[1] for row in sorted(rows, key=lambda row: row[5]) if row[5])
    return SourceTable(name, tuple(_column(row, indexes.never_null_key) for row in rows), key)


def _column(row: Row, never_null_key: bool) -> SourceColumn:
    _, name, declared, required, _, in_key, hidden = row
    nullable = not required and not (in_key and never_null_key)
    return SourceColumn(name, arrow_type(declared), declared, nullable, hidden in _GENERATED)


class _Indexes:
    """The unique indexes of a table."""

    def __init__(self, db: SqliteConnection, table: str):
        self._db, self._table = db, table
        listed = db.rows(f"PRAGMA index_list({quoted(table)})")
        self._unique = [(name, origin) for _, name, unique, origin, _ in listed if unique]
        self._key = next((name for name, origin in self._unique if origin == "pk"), None)
        self._numbered = self._has_row_numbers()
        columns = db.rows(f"PRAGMA table_xinfo({quoted(table)})")
        self._generated = {row[1] for row in columns if row[6] in _GENERATED}
        self._defaults = {row[1]: row[4] for row in columns if row[3] and row[4] is not None}

    @property
    def never_null_key(self) -> bool:
        """Whether the key is the row's number, or takes its place: elsewhere SQLite lets it be null."""
        return self._key is None or not self._numbered

    def key_collations(self, table: SourceTable) -> tuple[str, ...]:
        """Return how the columns of the key are compared."""
        if self._key is None:
            return (BINARY,) * len(table.key)
        found = {row[2]: row[4].upper() for row in self._columns(self._key)}
        return tuple(found[name] for name in table.key)

    def uniques(self, collations: tuple[str, ...]) -> tuple[Unique, ...]:
        """Return what no two rows have in common, but the key where it is equal only to itself."""
        same = set(collations) == {BINARY}
        return tuple(self._described(name) for name, origin in self._unique if not (origin == "pk" and same))

    def keys(self, table: SourceTable) -> tuple[Unique, ...]:
        """Return the key."""
        terms = (Term(f"{quoted(table.name)}.{quoted(name)}", quoted(name)) for name in table.key)
        return (Unique(tuple(terms)),)

    def row_numbers(self, table: SourceTable) -> tuple[Unique, ...]:
        """Return the number of a row, where it is not the key and can be written."""
        taken = {each.name.lower() for each in table.columns}
        free = next((name for name in ROW_NUMBERS if name not in taken), None)
        if self._key is None or not self._numbered or free is None:
            return ()
        return (Unique((Term(f"{quoted(table.name)}.{free}", free),)),)

    def _described(self, index: str) -> Unique:
        columns = self._columns(index)
        sql = self._db.value("SELECT sql FROM sqlite_master WHERE type = 'index' AND name = ?", index)
        written, where = index_terms(sql) if sql else ([], None)
        terms = (self._term(row, written[number : number + 1]) for number, row in enumerate(columns))
        return Unique(tuple(terms), where)

    def _term(self, row: Row, written: list[str]) -> Term:
        column, collation = row[2], quoted(row[4])
        if column is None:
            return Term(f"({written[0]}) COLLATE {collation}", None)
        sql = f"{quoted(self._table)}.{quoted(column)} COLLATE {collation}"
        if column in self._generated:
            return Term(sql, None)
        return Term(sql, quoted(column), self._defaults.get(column))

    def _columns(self, index: str) -> list[Row]:
        return [row for row in self._db.rows(f"PRAGMA index_xinfo({quoted(index)})") if row[5]]

    def _has_row_numbers(self) -> bool:
        """Tell whether rows have numbers beside the key, which WITHOUT ROWID tables do without."""
        if self._key is None:
            return True
        # An index leads to the number of a row, whose column is -1, or is the table itself.
        return any(row[1] == -1 for row in self._db.rows(f"PRAGMA index_xinfo({quoted(self._key)})"))
