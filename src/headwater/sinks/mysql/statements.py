"""The SQL of a MySQL sink.

Invariant: every name is quoted here, and every value is a parameter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from headwater.stores.mysql import columns
from headwater.values.keyed import KeyedSchema

CATALOG_MARK = "Headwater: which tables are kept here, and how far each has got; format 1"
CREATE_CATALOG = (
    "CREATE TABLE IF NOT EXISTS headwater_sinks ("
    "name VARCHAR(64) NOT NULL, version INT NOT NULL, columns LONGTEXT NOT NULL, key_columns TEXT NOT NULL, "
    "batch BIGINT NOT NULL DEFAULT -1, epoch BIGINT NOT NULL DEFAULT 0, positions LONGTEXT NOT NULL, "
    "clock BIGINT, filled BOOLEAN NOT NULL DEFAULT FALSE, adopted BOOLEAN NOT NULL, "
    "PRIMARY KEY (name, version)) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin "
    f"COMMENT = '{CATALOG_MARK}'"
)
FIND = (
    "SELECT columns, key_columns, batch, epoch, filled, adopted FROM headwater_sinks "
    "WHERE name = %s AND version = %s"
)
ADD = (
    "INSERT INTO headwater_sinks (name, version, columns, key_columns, positions, adopted) "
    "VALUES (%s, %s, %s, %s, '', %s)"
)
TAKE_OVER = "UPDATE headwater_sinks SET epoch = epoch + 1 WHERE name = %s AND version = %s"
SAVE_PROGRESS = (
    "UPDATE headwater_sinks SET batch = %s, positions = %s, clock = %s, filled = %s "
    "WHERE name = %s AND version = %s"
)
FORGET = "DELETE FROM headwater_sinks WHERE name = %s AND version <> %s"
TABLES = (
    "SELECT table_name, table_comment, engine FROM information_schema.tables "
    "WHERE table_schema = DATABASE() AND (table_name = %s OR LEFT(table_name, %s) = %s)"
)
UNIQUE = (
    "SELECT index_name, column_name, sub_part FROM information_schema.statistics "
    "WHERE table_schema = DATABASE() AND table_name = %s AND non_unique = 0"
)
COLUMNS = (
    "SELECT column_name, collation_name FROM information_schema.columns "
    "WHERE table_schema = DATABASE() AND table_name = %s"
)


def quoted(name: str) -> str:
    """Return a name as MySQL takes any.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def bound(name: str) -> str:
    """Return a name in a statement that takes parameters, whose mark is a ``%``."""
    return quoted(name).replace("%", "%%")


@dataclass(frozen=True)
class TableStatements:
    """The statements for one table."""

    table: str
    keyed: KeyedSchema

    def create(self, mark: str, *, mariadb: bool) -> str:
        """Make the table; texts are compared byte by byte, with the spaces at their ends."""
        collation = "utf8mb4_nopad_bin" if mariadb else "utf8mb4_0900_bin"
        declared = [
            f"{quoted(field.name)} {columns.sql_type(field, key=field.name in self.keyed.key)}"
            + (" NOT NULL" if field.name in self.keyed.key or not field.nullable else " NULL")
            for field in self.keyed.schema
        ]
        key = ", ".join(map(quoted, self.keyed.key))
        comment = mark.replace("\\", "\\\\").replace("'", "''")
        return (
            f"CREATE TABLE {quoted(self.table)} ({', '.join(declared)}, PRIMARY KEY ({key})) ENGINE = InnoDB "
            f"DEFAULT CHARSET = utf8mb4 COLLATE = {collation} COMMENT = '{comment}'"
        )

    @cached_property
    def upsert(self) -> str:
        """Put rows in their places; a row that stays the same is not written."""
        names = [bound(name) for name in self.keyed.schema.names]
        others = [bound(field.name) for field in self.keyed.value_fields] or [bound(self.keyed.key[0])]
        assignments = ", ".join(f"{name} = VALUES({name})" for name in others)
        marks = ", ".join(["%s"] * len(names))
        return (
            f"INSERT INTO {bound(self.table)} ({', '.join(names)}) VALUES ({marks}) "  # noqa: S608
            f"ON DUPLICATE KEY UPDATE {assignments}"
        )

    def delete(self, count: int) -> str:
        """Remove so many rows, by their keys."""
        key = ", ".join(map(bound, self.keyed.key))
        one = f"({', '.join(['%s'] * len(self.keyed.key))})"
        return f"DELETE FROM {bound(self.table)} WHERE ({key}) IN ({', '.join([one] * count)})"  # noqa: S608

    @cached_property
    def any(self) -> str:
        """Tell whether the table has a row."""
        return f"SELECT EXISTS (SELECT 1 FROM {quoted(self.table)})"  # noqa: S608

    @cached_property
    def hold(self) -> str:
        """Keep the table from being renamed until the end of the transaction."""
        return f"SELECT 1 FROM {quoted(self.table)} LIMIT 0"  # noqa: S608

    @cached_property
    def all(self) -> str:
        """Return every row."""
        names = ", ".join(map(quoted, self.keyed.schema.names))
        return f"SELECT {names} FROM {quoted(self.table)}"  # noqa: S608
