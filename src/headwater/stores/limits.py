"""What a store can hold, of names and columns: told before anything is made, and without connecting.

Invariant: a declaration that passes is refused by its store for no name and for no number of columns.
"""

from __future__ import annotations

import pyarrow as pa

from headwater.errors import SchemaError, UsageError
from headwater.values.keyed import KeyedSchema

POSTGRES_NAME = 63
"""Bytes of a name; PostgreSQL cuts off the rest, and two names may become one."""
_POSTGRES_COLUMNS = 1600 - 1
"""A table's columns, less the one that marks deletions while rows are on their way."""
_POSTGRES_SELECTED = (1664 - 3) // 2
"""A change is read with its row before and after, its number, kind and batch."""
_POSTGRES_KEY = 32
_POSTGRES_OWN = {"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"}
"""Columns that every table has by itself."""
_SQLITE_COLUMNS = 2000 - 3
"""The columns of a change: its key, and its other columns before and after."""
_MYSQL_COLUMNS, _MYSQL_KEY, _MYSQL_NAME, _MYSQL_SCALE = 1017, 16, 64, 30
"""Of InnoDB; a scale of 38 is MariaDB's alone."""
_MYSQL_TEXTS = 3
"""A key has up to 3,072 bytes, and 255 characters of text up to 1,020."""
CHANGES = "_changes"
_VERSION = "@1048576"
"""The longest that is put at the end of a version's name."""


def check_postgres(keyed: KeyedSchema, *, changes: bool) -> None:
    """Refuse columns that a PostgreSQL table cannot have; ``changes``: whether its changes are kept."""
    _check_count(keyed, len(keyed.schema), _POSTGRES_SELECTED if changes else _POSTGRES_COLUMNS, "columns")
    _check_count(keyed, len(keyed.key), _POSTGRES_KEY, "key columns")
    for name in keyed.schema.names:
        if name in _POSTGRES_OWN:
            raise SchemaError(
                f'{keyed.what} cannot have a column "{name}"',
                detail="every table of PostgreSQL has a column of that name by itself",
                hint="give the column another name",
            )
        _check_length(f'column "{name:.40}" of {keyed.what}', name)


def check_sqlite(keyed: KeyedSchema) -> None:
    """Refuse more columns than SQLite takes."""
    most = (_SQLITE_COLUMNS + len(keyed.key)) // 2  # a key is kept once in a change
    _check_count(keyed, len(keyed.schema), most, "columns")


def check_mysql(table: str, keyed: KeyedSchema) -> None:
    """Refuse a table that neither MySQL nor MariaDB can have."""
    _check_count(keyed, len(keyed.schema), _MYSQL_COLUMNS, "columns")
    _check_count(keyed, len(keyed.key), _MYSQL_KEY, "key columns")
    texts = [field for field in keyed.key_fields if pa.types.is_string(field.type) or _is_binary(field)]
    _check_count(keyed, len(texts), _MYSQL_TEXTS, "STRING and BINARY columns in its key")
    for name in (table, *keyed.schema.names):
        own = len(_VERSION) if name is table else 0
        if not name.strip() or len(name) + own > _MYSQL_NAME or name != name.rstrip() or "\0" in name:
            raise UsageError(
                f'"{name:.60}" of {keyed.what:.80} is no name in MySQL',
                hint="use up to 56 characters, and no space at the end",
            )
    for field in keyed.schema:
        if pa.types.is_decimal(field.type) and field.type.scale > _MYSQL_SCALE:
            raise SchemaError(
                f'column "{field.name}" of {keyed.what} has too many digits behind the point for MySQL',
                hint=f"cast it to one of up to {_MYSQL_SCALE}",
            )


def _is_binary(field: pa.Field) -> bool:
    return bool(pa.types.is_binary(field.type))


def check_view_name(name: str) -> None:
    """Refuse the name of a view that is kept in PostgreSQL, where it is a table's."""
    if "." in name:
        raise UsageError(
            f'view "{name}" cannot be kept in PostgreSQL: it has a dot in its name',
            hint="leave out the dot; a schema is named in the URL, by ?options=-csearch_path%3DNAME",
        )
    _check_length(f'view "{name}"', f"{name}{_VERSION}{CHANGES}")


def check_table_name(name: str) -> None:
    """Refuse the name of a table, with or without its schema, that PostgreSQL would cut off."""
    for part in (*name.split(".")[:-1], name.split(".")[-1] + CHANGES):
        _check_length(f'table "{name}"', part)
    if not all(name.split(".")) or name.count(".") > 1:
        raise UsageError(f'invalid table name "{name}"', hint='write "table", or "schema.table"')


def _check_length(what: str, name: str) -> None:
    over = len(name.encode()) - POSTGRES_NAME
    if over > 0:
        raise UsageError(
            f"the name of {what} is too long for PostgreSQL", hint=f"make it shorter by {over} bytes"
        )


def _check_count(keyed: KeyedSchema, count: int, most: int, what: str) -> None:
    if count > most:
        raise SchemaError(
            f"{keyed.what} has too many {what}",
            detail=f"it has {count:,}, and its store takes {most:,}",
            hint="put some of them into one column, a STRUCT or a MAP" if what == "columns" else None,
        )
