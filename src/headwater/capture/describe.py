"""Tables of a database as the lines of a pipeline that declare them, ready to be pasted.

Invariant: a line that is printed can be run, and declares columns that hold what the database's do.
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterable
from functools import partial

import pyarrow as pa

from headwater import schema
from headwater.capture.change import SourceTable
from headwater.errors import SchemaError

_WIDTH = 110
_NOT_IN_NAMES = re.compile(r"\W+", re.ASCII)


def declarations(tables: Iterable[SourceTable], capture: str) -> list[str]:
    """Return a line for each table; of one that cannot be captured, a comment that says why.

    >>> from headwater.capture.change import SourceColumn
    >>> columns = (SourceColumn("id", pa.int64(), "BIGINT", False), SourceColumn("name", pa.string(), "TEXT"))
    >>> print(*declarations([SourceTable("customers", columns, ("id",))], "crm"))
    shop.table("customers", "id BIGINT, name STRING", key="id", captured="crm.customers")
    """
    return [_declaration(table, capture) for table in tables]


def _declaration(table: SourceTable, capture: str) -> str:
    if not table.key:
        return f'# table "{table.name}" cannot be captured: it has no primary key'
    try:
        columns = schema.ddl(_nullable(table.schema))
    except SchemaError as error:
        return f'# table "{table.name}" cannot be captured: {error.message}'
    key = _text(table.key[0]) if len(table.key) == 1 else f"[{', '.join(map(_text, table.key))}]"
    arguments = [_text(_name(table.name)), _text(columns), f"key={key}"]
    arguments.append(f"captured={_text(f'{capture}.{table.name}')}")
    return _fitted("shop.table(", arguments)


def _fitted(call: str, arguments: list[str]) -> str:
    """Return a call in one line, or with a line for each argument where that is too long."""
    line = f"{call}{', '.join(arguments)})"
    if len(line) <= _WIDTH:
        return line
    return "\n".join([call, *(f"    {argument}," for argument in arguments), ")"])


def _name(table: str) -> str:
    """Return the name that a table may have in a pipeline, where functions name it as a parameter."""
    name = _NOT_IN_NAMES.sub("_", table).strip("_")
    if not name or name[0].isdigit():
        return f"t_{name}"
    return f"{name}_" if keyword.iskeyword(name) else name


def _nullable(columns: pa.Schema) -> pa.Schema:
    """Return columns that may be null: a deletion tells the key alone, and the database may be altered."""
    return pa.schema([field.with_nullable(True) for field in columns])


_text = partial(json.dumps, ensure_ascii=False)
"""A text as Python writes it, too, in double quotes."""
