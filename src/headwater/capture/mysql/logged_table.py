"""A table as the binlog describes it, beside what the catalog says.

With each change the binlog has the names and types of the columns as they were then; the catalog has what
it lacks (the declared type, whether a column is generated, widths), as it is now. They differ where a stream
that is behind reads changes from before an ALTER TABLE: what the catalog no longer has, or has with another
type, is then made from the binlog alone. A column that was renamed looks like one that is gone and another
that has come.

Invariant: the columns are those of the rows in the binlog; where the catalog has the same, it is the
catalog's table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
from pymysqlreplication.constants import FIELD_TYPE

from headwater.capture.mysql.catalog import MySqlTable, made
from headwater.capture.mysql.column_types import MySqlColumn, mysql_column

_KINDS: Final[Mapping[int, tuple[str, ...]]] = {
    FIELD_TYPE.TINY: ("tinyint",),
    FIELD_TYPE.SHORT: ("smallint",),
    FIELD_TYPE.INT24: ("mediumint",),
    FIELD_TYPE.LONG: ("int",),
    FIELD_TYPE.LONGLONG: ("bigint",),
    FIELD_TYPE.NEWDECIMAL: ("decimal",),
    FIELD_TYPE.FLOAT: ("float",),
    FIELD_TYPE.DOUBLE: ("double",),
    FIELD_TYPE.DATE: ("date",),
    FIELD_TYPE.DATETIME: ("datetime",),
    FIELD_TYPE.DATETIME2: ("datetime",),
    FIELD_TYPE.TIMESTAMP: ("timestamp",),
    FIELD_TYPE.TIMESTAMP2: ("timestamp",),
    FIELD_TYPE.TIME: ("time",),
    FIELD_TYPE.TIME2: ("time",),
    FIELD_TYPE.YEAR: ("year",),
    FIELD_TYPE.ENUM: ("enum",),
    FIELD_TYPE.SET: ("set",),
    FIELD_TYPE.JSON: ("json",),
    FIELD_TYPE.BIT: ("bit",),
    FIELD_TYPE.VARCHAR: ("varchar", "varbinary"),
    FIELD_TYPE.STRING: ("char", "binary"),
    FIELD_TYPE.BLOB: (
        "text",
        "tinytext",
        "mediumtext",
        "longtext",
        "blob",
        "tinyblob",
        "mediumblob",
        "longblob",
    ),
}
"""What the catalog may call a type of the binlog; the first is its name where the catalog does not know."""


def logged_table(name: str, logged: Sequence[Any], known: MySqlTable | None) -> MySqlTable:
    """Return a table whose columns the binlog describes, with what the catalog knows of them."""
    present = {each.name: each for each in known.columns} if known else {}
    unread = known.unread if known else frozenset[str]()
    found = [_column(each, present.get(each.name)) for each in logged if each.name not in unread]
    columns = tuple(each for each in found if each is not None)
    names = [each.name for each in columns]
    if known is not None and [each.name for each in known.columns] == names:
        key = known.table.key
    else:
        key = known.table.key if known and set(known.table.key) <= set(names) else ()
        key = key or tuple(each.name for each in logged if each.is_primary)
    return made(name, columns, key, unread)


def _column(logged: Any, known: MySqlColumn | None) -> MySqlColumn | None:
    """Return a column, or None if its values are not read here."""
    if (
        known is None
        or known.kind not in _KINDS.get(logged.type, ())
        or _is_bytes(logged) != pa.types.is_binary(known.type)
    ):
        return _from_binlog(logged)
    return replace(known, members=tuple(logged.set_values or ())) if known.kind == "set" else known


def _from_binlog(logged: Any) -> MySqlColumn | None:
    if logged.type not in _KINDS:
        return None
    names = _KINDS[logged.type]
    kind = (
        next((each for each in names if "bin" in each or "blob" in each), names[0])
        if _is_bytes(logged)
        else names[0]
    )
    described = {
        "COLUMN_NAME": logged.name,
        "DATA_TYPE": kind,
        "COLUMN_TYPE": f"bit({logged.bits})"
        if kind == "bit"
        else kind + (" unsigned" if logged.unsigned else ""),
        "IS_NULLABLE": "YES",
        "EXTRA": "",
        "NUMERIC_PRECISION": getattr(logged, "precision", None),
        "NUMERIC_SCALE": getattr(logged, "decimals", None),
        "DATETIME_PRECISION": getattr(logged, "fsp", None),
        "CHARACTER_OCTET_LENGTH": getattr(logged, "max_length", None),
        "CHARACTER_SET_NAME": None,
    }
    made = mysql_column(described)
    return None if made is None else replace(made, members=tuple(logged.set_values or ()))


def _is_bytes(logged: Any) -> bool:
    return bool(logged.character_set_name == "binary")
