"""Whether a table is as it is declared: each difference in words.

Invariant: what is found to fit holds every value of the column, but for those that only a value can tell: a
text that has to be read, and what a source reports row by row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from headwater.capture.change import SourceTable
from headwater.capture.outbox.captured_outbox import CapturedOutbox
from headwater.capture.writing.captured_table import CapturedTable
from headwater.errors import SourceRefused, nearest
from headwater.schema import type_name

_t = pa.types


def differences(captured: CapturedTable | CapturedOutbox, table: SourceTable) -> list[str]:
    """Return what keeps a table from being captured as it is declared, a sentence each."""
    if isinstance(captured, CapturedOutbox):
        return [*_events(captured, table), *_headers(captured, table), *_some_key(table)]
    return [*_columns(captured.schema, table), *_key(captured, table)]


def check_declared(
    captured: CapturedTable | CapturedOutbox, found: Mapping[str, SourceTable], title: str
) -> None:
    """Refuse a table that its database, of which the title is given, does not have as it is declared."""
    if captured.table not in found:
        hint = nearest(captured.table, found) or "its tables: " + ", ".join(found)
        raise SourceRefused(f'{title} has no table "{captured.table}"', hint=hint)
    wrong = differences(captured, found[captured.table])
    if wrong:
        raise SourceRefused(
            f'table "{captured.table}" of {title} is not as it is declared',
            detail="; ".join(wrong),
            hint="`headwater capture describe URL` prints it as it is",
        )


def _columns(declared: pa.Schema, table: SourceTable) -> Iterator[str]:
    present = {column.name: column for column in table.columns}
    for field in declared:
        column = present.get(field.name)
        if column is None:
            yield _missing(field.name, table)
        elif not holds(field.type, column.type):
            yield f'column "{field.name}" is {column.sql_type}, which {type_name(field)} does not hold'
        elif column.nullable and not field.nullable:
            yield f'column "{field.name}" may be null, and is declared NOT NULL'


def _missing(name: str, table: SourceTable) -> str:
    hint = nearest(name, [column.name for column in table.columns])
    return f'there is no column "{name}"' + (f" ({hint})" if hint else "")


def _events(captured: CapturedOutbox, table: SourceTable) -> Iterator[str]:
    """Yield what keeps rows from being events as they are declared."""
    if captured.event is None:
        yield from _columns(captured.schema, table)
        return
    column = next((each for each in table.columns if each.name == captured.event), None)
    if column is None:
        yield _missing(captured.event, table)
    elif not _t.is_string(column.type):
        yield f'column "{column.name}" is {column.sql_type}, which holds no JSON'


def _headers(captured: CapturedOutbox, table: SourceTable) -> Iterator[str]:
    present = {column.name: column for column in table.columns}
    for name in captured.headers:
        if name not in present:
            yield _missing(name, table)
        elif _t.is_nested(present[name].type):
            yield f'column "{name}" is {present[name].sql_type}, which is no header'


def _some_key(table: SourceTable) -> Iterator[str]:
    if not table.key:
        yield "it has no primary key, so its rows cannot be told apart"


def _key(captured: CapturedTable, table: SourceTable) -> Iterator[str]:
    if not table.key:
        yield from _some_key(table)
    elif set(captured.key) != set(table.key):
        yield f"its key is ({', '.join(table.key)}), not ({', '.join(captured.key)})"


def holds(declared: pa.DataType, source: pa.DataType) -> bool:
    """Tell whether a declared type can hold the values of a source's, or reads them from text."""
    if declared == source or _t.is_string(source):
        return True
    if _t.is_integer(source):
        return _holds_integer(declared, source)
    if _t.is_decimal(source) and _t.is_decimal(declared):
        digits = declared.precision - declared.scale
        return bool(declared.scale >= source.scale and digits >= source.precision - source.scale)
    if _t.is_floating(source) and _t.is_floating(declared):
        return bool(declared.bit_width >= source.bit_width)
    if _t.is_list(source) and _t.is_list(declared):
        return holds(declared.value_type, source.value_type)
    return False


def _holds_integer(declared: pa.DataType, source: pa.DataType) -> bool:
    if _t.is_decimal(declared):
        return bool(declared.precision - declared.scale >= len(str(2 ** (source.bit_width - 1))))
    return bool(_t.is_integer(declared) and declared.bit_width >= source.bit_width)
