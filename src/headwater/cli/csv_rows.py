"""CSV records as rows of a topic.

pyarrow reads what CSV has a form for; the rest (nested columns, binary, free JSON, times with or
without a zone) is JSON in a cell and goes the way of JSON lines. Invariant: an empty cell is null,
an empty cell in quotes is an empty text.
"""

from __future__ import annotations

import csv
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv

from headwater.cli.texts import is_plain
from headwater.errors import RowError, nearest
from headwater.log import Topic, jsonl

Decoded = tuple[pa.RecordBatch, list[tuple[int, RowError]]]


class CsvRows:
    """Decodes the records that follow one header."""

    def __init__(self, header: bytes, topic: Topic):
        self._names = _names(header, topic)
        self._topic = topic
        fields = [topic.read_schema.field(name) for name in self._names]
        self._by_json = [f for f in fields if not is_plain(f) or f.type == pa.timestamp("us", "UTC")]
        texts = {f.name: pa.string() for f in self._by_json}
        self._types = {f.name: texts.get(f.name, f.type) for f in fields}

    def decode(self, values: list[bytes]) -> Decoded:
        """Return the rows up to the first that does not fit, and that one's index and reason."""
        try:
            batch = self._parse(values)
        except pa.ArrowInvalid as error:
            return self._halve(values, error)
        return self._with_json(batch) if self._by_json else (batch, [])

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

    def _halve(self, values: list[bytes], error: pa.ArrowInvalid) -> Decoded:
        if len(values) == 1:
            reason = RowError(f'row does not fit topic "{self._topic.name}"', detail=_reason(error))
            return pa.RecordBatch.from_pylist([], self._topic.read_schema), [(0, reason)]
        half = len(values) // 2
        first, bad = self.decode(values[:half])
        if bad:
            return first, bad
        second, bad = self.decode(values[half:])
        joined = pa.concat_batches([first, second]) if len(second) else first
        return joined, [(half + index, reason) for index, reason in bad]

    def _with_json(self, batch: pa.RecordBatch) -> Decoded:
        """Replace the columns that are JSON in a cell by their values."""
        members = [_member(batch.column(f.name), f) for f in self._by_json]
        # `"_"` keeps a topic of one free JSON column from being taken as a bare value, and a row of
        # nulls from being left out, as pyarrow does with skip.
        inner = pc.binary_join_element_wise('"_":0', *members, ",", null_handling="skip")
        lines = pc.binary_join_element_wise("{", inner, "}", "").cast(pa.binary()).to_pylist()
        schema = pa.schema([*self._by_json, pa.field("_", pa.int8())])
        values, bad = jsonl.decode(lines, replace(self._topic, schemas=(schema,), key=()))
        batch = batch.slice(0, bad[0][0]) if bad else batch
        for field in self._by_json:
            at = batch.schema.names.index(field.name)
            batch = batch.set_column(at, field, values.column(field.name).slice(0, len(batch)))
        return batch, bad[:1]


def _names(header: bytes, topic: Topic) -> list[str]:
    names = next(csv.reader([header.decode(errors="replace").strip()]))
    known = topic.read_schema.names
    for name in names:
        if name not in known:
            hint = nearest(name, known) or "its columns: " + ", ".join(known)
            raise RowError(
                f'topic "{topic.name}" has no column "{name}"', detail="it is in the header row", hint=hint
            )
        if names.count(name) > 1:
            raise RowError(f'column "{name}" is twice in the header row')
    return names


def _member(column: pa.Array, field: pa.Field) -> pa.Array:
    """Return ``"name": value`` of each cell; times and binary are text, the others JSON already."""
    quoted = pa.types.is_timestamp(field.type) or pa.types.is_binary(field.type)
    name = jsonl.text(pa.array([field.name]))[0].as_py()
    return pc.binary_join_element_wise(name, jsonl.text(column) if quoted else column, ":")


def _reason(error: pa.ArrowInvalid) -> str:
    return str(error).splitlines()[0].removeprefix("CSV parse error: ")
