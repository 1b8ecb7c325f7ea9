"""CSV after RFC 4180: a value is one record without a header, its cells the topic's columns in their order.

An empty cell is null, an empty cell in quotes is an empty text. What CSV has no form for, nested columns and
free JSON, is JSON in a cell; binary is base64, and times are ISO 8601. All values are read at once, so each
is first held against the grammar: a quote that one leaves open would swallow the next. Invariant: as in
``formats``; no value takes part in the record of another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv

from headwater.errors import RowError
from headwater.formats.json_columns import GuessedColumn
from headwater.formats.typed_rows import check_nulls, misfit
from headwater.schema import is_variant, parse
from headwater.topic import Topic
from headwater.values import bulk, floats, jsonl, jsonl_columns
from headwater.values.bulk import Bad, Rows
from headwater.values.columns import REFUSALS, Misfit
from headwater.values.jsonl_columns import how_to_write, not_utf8

_CELL = r'(?:"(?:[^"]|"")*"|[^",\r\n]*)'
_RECORD = rf"^{_CELL}(?:,{_CELL})*$"
_QUOTED = re.compile(rb'"(?:[^"]|"")*"')
_BOM = b"\xef\xbb\xbf"
_MOST_AT_ONCE = 500
"""Columns that one pattern can count."""
_INTEGER = r"^-?[0-9]+$"
_GUESSES = {
    "BIGINT": _INTEGER,
    "DOUBLE": r"^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$",
    "TIMESTAMP": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}",
    "DATE": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
}
"""What cells of a type look like, in the order in which they are tried."""
_t = pa.types


def decode(values: Sequence[bytes], topic: Topic) -> Rows:
    """Return the rows of CSV records, and those that do not fit."""
    lines = [value.removesuffix(b"\n").removesuffix(b"\r") for value in values]
    bad = _not_records(lines, topic)
    wrong = {index for index, _ in bad}
    places = [index for index in range(len(lines)) if index not in wrong]
    batch, misfits = _rows([lines[index] for index in places] if bad else lines, topic)
    return batch, sorted([*bad, *((places[at], error) for at, error in misfits)], key=lambda each: each[0])


def guessed_columns(values: Sequence[bytes]) -> list[GuessedColumn] | None:
    """Return columns for values that are records of as many cells each, two or more; None if they are not."""
    lines = [value.removesuffix(b"\n").removesuffix(b"\r") for value in values]
    counts = {_QUOTED.sub(b"", line).count(b",") + 1 for line in lines}
    if len(counts) != 1 or (count := counts.pop()) < 2:
        return None
    texts = Topic("cells", (pa.schema([pa.field(f"c{n + 1}", pa.string()) for n in range(count)]),))
    if _not_records(lines, texts):
        return None
    cells = _cells(lines, texts)
    return [_guessed(name, column) for name, column in zip(texts.schema.names, cells.columns, strict=True)]


def _guessed(name: str, texts: pa.Array) -> GuessedColumn:
    for kind, pattern in _GUESSES.items():
        if pc.all(pc.match_substring_regex(texts, pattern)).as_py():
            with suppress(Misfit, *REFUSALS):
                return GuessedColumn(name, kind, _values(texts, parse(f"c {kind}").field("c")).to_pylist())
    return GuessedColumn(name, "STRING")


def _not_records(lines: Sequence[bytes], topic: Topic) -> list[Bad]:
    """Return the values that are not one record of as many cells as there are columns."""
    count, column = len(topic.schema), pa.array(lines, pa.binary())
    doubtful: Iterable[int] = range(len(lines))
    if count <= _MOST_AT_ONCE and _are_utf8(column):
        right = pc.match_substring_regex(column, rf"^{_CELL}(?:,{_CELL}){{{count - 1}}}$")
        doubtful = pc.indices_nonzero(pc.invert(right)).to_pylist()
    found = ((index, _reason(lines[index], topic)) for index in doubtful)
    return [(index, error) for index, error in found if error is not None]


def _are_utf8(column: pa.Array) -> bool:
    try:
        column.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def _reason(line: bytes, topic: Topic) -> RowError | None:
    """Return why a value is no record of the topic's, None if it is one."""
    if (error := not_utf8(line, topic)) is not None:
        return error
    if not pc.match_substring_regex(pa.scalar(line, pa.binary()), _RECORD).as_py():
        return RowError(
            f'value is not one CSV record, for topic "{topic.name}"',
            detail=f"got {line[:80]!r}",
            hint="put a cell with a comma, a quote or a line break in quotes, and double its own quotes",
        )
    cells, columns = _QUOTED.sub(b"", line).count(b",") + 1, len(topic.schema)
    if cells == columns:
        return None
    return RowError(
        f'row does not fit topic "{topic.name}"', detail=f"it has {cells} cells, the schema {columns} columns"
    )


def _rows(lines: Sequence[bytes], topic: Topic) -> Rows:
    cells = _cells(lines, topic)

    def parse(start: int, end: int) -> pa.RecordBatch:
        made = [
            _column(cells.column(n).slice(start, end - start), f, topic) for n, f in enumerate(topic.schema)
        ]
        batch = pa.RecordBatch.from_arrays(made, schema=topic.schema)
        check_nulls(batch, topic)
        return batch

    return bulk.decoded(len(lines), topic.schema, parse)


def _cells(lines: Sequence[bytes], topic: Topic) -> pa.RecordBatch:
    """Return the cells of records as texts, a column for each; null where one is empty."""
    names = [str(number) for number in range(len(topic.schema))]
    texts = pa.schema([pa.field(name, pa.string()) for name in names])
    if not lines:
        return pa.RecordBatch.from_pylist([], schema=texts)
    data = _BOM + b"\n".join(lines) + b"\n"  # which pyarrow drops, and so not one of the first value
    table = pv.read_csv(
        pa.BufferReader(data),
        pv.ReadOptions(column_names=names, use_threads=False, block_size=len(data) + 1),
        pv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        pv.ConvertOptions(
            column_types=texts, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
        ),
    )
    assert table.num_rows == len(lines)  # for each is one record
    return table.combine_chunks().to_batches()[0]


def _column(texts: pa.Array, field: pa.Field, topic: Topic) -> pa.Array:
    try:
        return _values(texts, field)
    except (Misfit, *REFUSALS) as error:
        reason = f": {error}" if isinstance(error, Misfit) and str(error) else ""
        detail = f'got "{texts[0].as_py()!s:.80}"{reason}' if len(texts) == 1 else None
        hint = (how_to_write(field) or "").removesuffix(", without quotes") or None
        raise misfit(field, topic, detail, hint) from None


def _values(texts: pa.Array, field: pa.Field) -> pa.Array:
    kind = field.type
    if is_variant(field) or _t.is_nested(kind):
        return _json(texts, field)
    if _t.is_floating(kind):
        return floats.read(texts, kind)
    for test, convert in _CONVERT:
        if test(kind):
            return convert(texts, kind)
    # DECIMAL, times and BINARY are text in JSON too.
    return jsonl_columns.column(texts.to_pylist(), kind)


def _integers(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    if not pc.all(pc.match_substring_regex(texts, _INTEGER), min_count=0).as_py():
        raise Misfit  # Arrow would take 0x10 as well
    return texts.cast(kind)


def _booleans(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    return texts.cast(kind)


def _json(texts: pa.Array, field: pa.Field) -> pa.Array:
    """Return cells that hold JSON; each is parsed alone first, so that none can add a member to its row."""
    found = texts.to_pylist()
    for text in found:
        orjson.loads("0" if text is None else text)
    lines = ['{"_":0}' if text is None else f'{{"_":0,"cell":{text}}}' for text in found]
    cell = field.with_name("cell").with_nullable(True)
    columns = Topic("cells", (pa.schema([cell, pa.field("_", pa.int8())]),))
    batch, bad = jsonl.decode([line.encode() for line in lines], columns)
    if bad:
        raise Misfit("" if bad[0][1].reason is None else bad[0][1].reason)
    return batch.column("cell")


_CONVERT: list[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array, pa.DataType], pa.Array]]] = [
    (_t.is_string, lambda texts, _: texts),
    (_t.is_integer, _integers),
    (_t.is_boolean, _booleans),
]
