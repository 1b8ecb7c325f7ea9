"""CSV records as rows of a topic.

pyarrow reads what CSV has a form for; the rest (nested columns, binary, free JSON, times with or
without a zone) is JSON in a cell and goes the way of JSON lines. Invariant: an empty cell is null,
an empty cell in quotes is an empty text.
"""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from itertools import islice

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv

from headwater import Topic
from headwater.bisection import failing
from headwater.errors import RowError, nearest
from headwater.record import DELETED, META, read_schema
from headwater.schema import type_name
from headwater.values import floats, jsonl
from headwater.values.columns import Misfit
from headwater.values.csv_text import is_plain
from headwater.values.jsonl_columns import how_to_write, not_utf8

_BAD_CELL = re.compile(r"In CSV column #(\d+): ")
_BAD_COUNT = re.compile(r"Expected (\d+) columns, got (\d+)")
Decoded = tuple[pa.RecordBatch, list[tuple[int, RowError]]]


class CsvRows:
    """Decodes the records that follow one header."""

    def __init__(self, header: bytes, topic: Topic):
        self._names = _names(header, topic)
        self._topic = topic
        known = read_schema(topic.schema, topic.compacted, meta=True)
        fields = [known.field(name) for name in self._names]
        self._ignored = [name for name in self._names if name in META and name != DELETED]
        fields = [pa.field(f.name, pa.string()) if f.name in self._ignored else f for f in fields]
        self._fields = {field.name: field for field in fields}
        self._by_json = [f for f in fields if not is_plain(f) or f.type == pa.timestamp("us", "UTC")]
        # pyarrow would round 0.123456789 to a FLOAT, and take 1e400 for infinity, without a word.
        self._floats = [f for f in fields if pa.types.is_floating(f.type)]
        texts = {f.name: pa.string() for f in [*self._by_json, *self._floats]}
        self._types = {f.name: texts.get(f.name, f.type) for f in fields}

    def decode(self, values: list[bytes]) -> Decoded:
        """Return the rows up to the first that does not fit, and that one's index and reason."""
        batch, unparsed = self._parsed(values)
        if batch is None:
            return pa.RecordBatch.from_pylist([], self._topic.read_schema), unparsed
        batch = batch.drop_columns(self._ignored) if self._ignored else batch
        batch, bad = self._with_floats(batch) if self._floats else (batch, [])
        rows, worse = self._with_json(batch) if self._by_json else (batch, [])
        return rows, worse or bad or unparsed  # what is left of the batch lies before the first bad row

    def _parsed(self, values: list[bytes]) -> tuple[pa.RecordBatch | None, list[tuple[int, RowError]]]:
        """Return the rows up to the first that is no CSV of the header's columns, and that one."""
        parts: list[pa.RecordBatch] = []

        def attempt(start: int, end: int) -> str | None:
            try:
                parts.append(self._parse(values[start:end]))
            except pa.ArrowInvalid as error:
                return str(error)
            return None

        bad = [
            (row, self._reason(values[row], said)) for row, said in islice(failing(len(values), attempt), 1)
        ]
        batch = parts[0] if len(parts) == 1 else pa.concat_batches(parts) if parts else None
        return batch, bad

    def _parse(self, values: list[bytes]) -> pa.RecordBatch:
        data = b"\n".join(values) + b"\n"
        table = pv.read_csv(
            pa.BufferReader(data),
            pv.ReadOptions(column_names=self._names, use_threads=False, block_size=len(data) + 1),
            pv.ParseOptions(newlines_in_values=True),
            pv.ConvertOptions(
                column_types=self._types,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        if len(table) != len(values):
            raise pa.ArrowInvalid("quotes that do not match")
        return table.combine_chunks().to_batches()[0]

    def _reason(self, value: bytes, said: str) -> RowError:
        return not_utf8(value, self._topic) or self._misfit(value, said)

    def _misfit(self, value: bytes, said: str) -> RowError:
        """Return what pyarrow says of a row, without its own count of rows and columns."""
        what = f'row does not fit topic "{self._topic.name}"'
        column = _BAD_CELL.search(said)
        if column is not None:
            field = self._fields[self._names[int(column[1])]]
            cell = _cell(value, int(column[1]))
            hint = (how_to_write(field) or "").removesuffix(", without quotes")
            what = f'{what}: column "{field.name}" is {type_name(field)}'
            return RowError(what, detail=cell and f'got "{cell[:80]}"', hint=hint or None)
        count = _BAD_COUNT.search(said)
        if count is not None:
            return RowError(
                what,
                detail=f"the header row has {count[1]} columns, this one {count[2]}",
                hint="put a cell with a comma or a newline in quotes",
            )
        return RowError(what, detail=said.splitlines()[0].removeprefix("CSV parse error: "))

    def _first_not_json(self, batch: pa.RecordBatch) -> int | None:
        """Return the first row with a cell that is not JSON by itself, and so could bring another column."""
        cells = [batch.column(field.name).to_pylist() for field in self._by_json if not _is_quoted(field)]
        rows = enumerate(zip(*cells, strict=True))
        return next((n for n, row in rows if not all(c is None or _is_json(c) for c in row)), None)

    def _not_json(self, batch: pa.RecordBatch, row: int, otherwise: RowError) -> RowError:
        """Return the error that names the cell which is not JSON, if that is what is wrong."""
        for field in self._by_json:
            cell = batch.column(field.name)[row].as_py()
            if cell is not None and not _is_quoted(field) and not _is_json(cell):
                what = f'row does not fit topic "{self._topic.name}": column "{field.name}"'
                return RowError(
                    f"{what} is {type_name(field)}, and the cell is not JSON",
                    detail=f"got {cell[:80]}",
                    hint="write JSON in quotes, with its own quotes doubled",
                )
        return otherwise

    def _with_floats(self, batch: pa.RecordBatch) -> Decoded:
        """Replace the texts of FLOAT and DOUBLE columns by numbers, up to the first that does not fit."""
        bad: list[tuple[int, RowError]] = []
        for field in self._floats:
            at, texts = batch.schema.names.index(field.name), batch.column(field.name)
            try:
                numbers = floats.read(texts, field.type)
            except (Misfit, pa.ArrowInvalid):
                row, reason = self._first_misfit(texts, field)
                bad, batch = [(row, reason)], batch.slice(0, row)
                numbers = floats.read(texts.slice(0, row), field.type)
            batch = batch.set_column(at, field, numbers)
        return batch, bad

    def _first_misfit(self, texts: pa.Array, field: pa.Field) -> tuple[int, RowError]:
        for row, text in enumerate(texts):  # one by one, as one of them is refused
            try:
                floats.read(pa.array([text.as_py()], pa.string()), field.type)
            except (Misfit, pa.ArrowInvalid) as error:
                why = f": {error}" if isinstance(error, Misfit) else ""
                what = f'row does not fit topic "{self._topic.name}": column "{field.name}"'
                return row, RowError(
                    f"{what} is {type_name(field)}",
                    detail=f'got "{text.as_py():.80}"{why}',
                    hint=(how_to_write(field) or "").removesuffix(", without quotes"),
                )
        raise AssertionError("each text fits, but not all together")

    def _with_json(self, batch: pa.RecordBatch) -> Decoded:
        """Replace the columns that are JSON in a cell by their values, up to the first that does not fit."""
        wrong = self._first_not_json(batch)
        if wrong is not None:
            rows, bad = self._with_json(batch.slice(0, wrong))
            what = f'row does not fit topic "{self._topic.name}"'
            return rows, bad or [(wrong, self._not_json(batch, wrong, RowError(what)))]
        members = [_member(batch.column(f.name), f) for f in self._by_json]
        # `"_"` keeps a topic of one free JSON column from being taken as a bare value, and a row of
        # nulls from being left out, as pyarrow does with skip.
        inner = pc.binary_join_element_wise('"_":0', *members, ",", null_handling="skip")
        lines = pc.binary_join_element_wise("{", inner, "}", "").cast(pa.binary()).to_pylist()
        schema = pa.schema([*self._by_json, pa.field("_", pa.int8())])
        values, bad = jsonl.decode(lines, replace(self._topic, schemas=(schema,), key=()))
        bad = [(at, self._not_json(batch, at, reason)) for at, reason in bad[:1]]
        batch = batch.slice(0, bad[0][0]) if bad else batch
        for field in self._by_json:
            at = batch.schema.names.index(field.name)
            batch = batch.set_column(at, field, values.column(field.name).slice(0, len(batch)))
        return batch, bad


def _names(header: bytes, topic: Topic) -> list[str]:
    names = next(csv.reader([header.decode(errors="replace").strip()]))
    known = topic.read_schema.names
    for name in names:
        if name not in known and name not in META:
            hint = nearest(name, known) or "its columns: " + ", ".join(known)
            raise RowError(
                f'topic "{topic.name}" has no column "{name}"', detail="it is in the header row", hint=hint
            )
        if names.count(name) > 1:
            raise RowError(f'column "{name}" is twice in the header row')
    if not set(names) - META.keys():
        raise RowError(
            f'header row names no column of topic "{topic.name}"', hint="its columns: " + ", ".join(known)
        )
    return names


def _member(column: pa.Array, field: pa.Field) -> pa.Array:
    """Return ``"name": value`` of each cell; times and binary are text, the others JSON already."""
    name = jsonl.text(pa.array([field.name]))[0].as_py()
    return pc.binary_join_element_wise(name, jsonl.text(column) if _is_quoted(field) else column, ":")


def _is_quoted(field: pa.Field) -> bool:
    return bool(pa.types.is_timestamp(field.type) or pa.types.is_binary(field.type))


def _cell(value: bytes, index: int) -> str | None:
    """Return a cell of a record, where Python reads the record as pyarrow does."""
    try:
        return next(csv.reader([value.decode()]))[index]
    except (csv.Error, IndexError):  # too long for it
        return None


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True
