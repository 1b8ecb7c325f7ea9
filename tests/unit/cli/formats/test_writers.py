"""Records as a table, lines of JSON, and CSV."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from headwater import Topic
from headwater.cli.formats import writers
from headwater.cli.formats.writers import row_writer, writer
from headwater.schema import parse

SCHEMA = parse("id BIGINT, tags ARRAY<INT>")
ROWS = pa.RecordBatch.from_pylist([{"id": 1, "tags": [2, 3]}, {"id": None, "tags": None}], SCHEMA)


@pytest.mark.parametrize(
    ("form", "lines"),
    [
        ("ndjson", ['{"id":1,"tags":[2,3]}', "{}"]),
        ("csv", ['"id","tags"', '1,"[2,3]"', ","]),
    ],
)
def test_each_form_writes_a_line_per_row(
    form: str, lines: list[str], capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    row_writer(form, SCHEMA)(ROWS)
    assert capsysbinary.readouterr().out.decode().splitlines() == lines


@pytest.mark.parametrize("form", ["table", "ndjson", "csv"])
def test_blocks_do_not_change_what_is_printed(
    form: str, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = pa.RecordBatch.from_pylist([{"id": number, "tags": [number]} for number in range(7)], SCHEMA)
    row_writer(form, SCHEMA)(batch)
    whole = capsysbinary.readouterr().out
    monkeypatch.setattr(writers, "BLOCK", 2)
    row_writer(form, SCHEMA)(batch)
    assert capsysbinary.readouterr().out == whole
    assert len(whole.splitlines()) >= 7


def test_a_header_comes_once_and_without_rows_too(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    write = row_writer("csv", SCHEMA)
    write(ROWS.slice(0, 0))
    write(ROWS)
    assert capsysbinary.readouterr().out.decode().splitlines().count('"id","tags"') == 1


def test_only_a_tombstone_is_marked_in_json(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    topic = Topic("customers", (parse("id BIGINT"),), key=("id",), cleanup="compact")
    rows = [{"id": 1, "_deleted": False}, {"id": 2, "_deleted": True}]
    writer("ndjson", topic, meta=False)(pa.RecordBatch.from_pylist(rows))
    told = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
    assert told == [{"id": 1}, {"id": 2, "_deleted": True}]


def test_a_column_that_came_later_is_left_out(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    write = row_writer("ndjson", parse("id BIGINT"))
    write(pa.RecordBatch.from_pydict({"id": [1], "more": ["x"]}))
    assert capsysbinary.readouterr().out == b'{"id":1}\n'
