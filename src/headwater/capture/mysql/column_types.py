"""Which Arrow type holds the values of a column of MySQL, and in which form its values come.

Arrow as Headwater uses it has no unsigned numbers: those are the next wider type, and the widest a decimal.
What has no type of ours is text, exactly as the server prints it: times, which may be negative or longer than
a day, and decimals of more than 38 digits.

Invariant: a column always becomes the same Arrow type, whether a value comes from the binlog or from a query.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from headwater.capture.change import SourceColumn

_WIDEST: Final = 38
_INTEGERS: Final = {
    "tinyint": (pa.int8(), pa.int16()),
    "smallint": (pa.int16(), pa.int32()),
    "mediumint": (pa.int32(), pa.int32()),
    "int": (pa.int32(), pa.int64()),
    "bigint": (pa.int64(), pa.decimal128(20)),
}
_SIMPLE: Final = {
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "datetime": pa.timestamp("us"),
    "timestamp": pa.timestamp("us", "UTC"),
    "time": pa.string(),
    "year": pa.int16(),
    "enum": pa.string(),
    "set": pa.string(),
    "json": pa.string(),
}
_TEXTS: Final = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext")
_BYTES: Final = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
_UNICODE: Final = ("utf8mb4", "utf8mb3", "utf8")
_WESTERN: Final = ("ascii", "latin1", "latin2", "latin5", "latin7", "cp1250", "cp1257")
_OTHERS: Final = ("cp1251", "koi8r", "koi8u", "greek", "hebrew", "cp1256", "tis620")
_EASTERN: Final = ("gbk", "gb2312", "gb18030", "big5", "sjis", "cp932", "euckr")
_CHARACTER_SETS: Final = frozenset((*_UNICODE, *_WESTERN, *_OTHERS, *_EASTERN))
"""Those whose texts Python reads under the same name; the binlog has each text in its own."""
_BITS: Final = re.compile(r"bit\((\d+)\)")


@dataclass(frozen=True)
class MySqlColumn:
    """A column with what its values are made by."""

    column: SourceColumn
    kind: str
    """The type without length or sign, as in ``information_schema``: ``int``, ``varchar``."""
    width: int = 0
    """Of ``binary`` the number of bytes, of ``bit`` that of bits, of ``time`` that of digits of a second."""
    members: tuple[str, ...] = ()
    """Of ``set`` what may be in it, in the order in which a value has them."""

    @property
    def name(self) -> str:
        """Its name."""
        return self.column.name

    @property
    def type(self) -> pa.DataType:
        """The Arrow type of its values."""
        return self.column.type


def mysql_column(row: dict[str, Any]) -> MySqlColumn | None:
    """Return a column from its row in ``information_schema``, or None if its values cannot be read."""
    kind, declared = str(row["DATA_TYPE"]).lower(), str(row["COLUMN_TYPE"]).lower()
    found = _type(kind, declared, row)
    if found is None or str(row["CHARACTER_SET_NAME"] or "utf8mb4") not in _CHARACTER_SETS:
        return None
    column = SourceColumn(
        str(row["COLUMN_NAME"]),
        found,
        str(row["COLUMN_TYPE"]),
        nullable=row["IS_NULLABLE"] == "YES",
        generated="GENERATED" in str(row["EXTRA"]).upper()
        and "DEFAULT_GENERATED" not in str(row["EXTRA"]).upper(),
    )
    return MySqlColumn(column, kind, _width(kind, declared, row))


def _type(kind: str, declared: str, row: dict[str, Any]) -> pa.DataType | None:
    if kind in _INTEGERS:
        signed, unsigned = _INTEGERS[kind]
        return unsigned if "unsigned" in declared or "zerofill" in declared else signed
    if kind == "decimal":
        precision, scale = int(row["NUMERIC_PRECISION"]), int(row["NUMERIC_SCALE"])
        return pa.decimal128(precision, scale) if precision <= _WIDEST else pa.string()
    if kind == "bit":
        return {1: pa.bool_(), 64: pa.decimal128(20)}.get(_width(kind, declared, row), pa.int64())
    if kind in _TEXTS:
        return pa.string()
    return pa.binary() if kind in _BYTES else _SIMPLE.get(kind)


def _width(kind: str, declared: str, row: dict[str, Any]) -> int:
    if kind == "binary":
        return int(row["CHARACTER_OCTET_LENGTH"])
    if kind == "bit":
        found = _BITS.match(declared)
        return int(found[1]) if found else 1
    return int(row["DATETIME_PRECISION"] or 0) if kind == "time" else 0
