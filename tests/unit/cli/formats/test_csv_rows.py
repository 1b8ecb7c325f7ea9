"""CSV records as rows of a topic."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import Topic
from headwater.cli.formats.csv_rows import CsvRows
from headwater.errors import RowError
from headwater.schema import parse

NUMBERS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1)
TOPIC = Topic("orders", (parse("id BIGINT, item STRING, price DOUBLE, tags ARRAY<STRING>"),))


def test_an_empty_cell_is_null_and_one_in_quotes_is_an_empty_text() -> None:
    batch, bad = CsvRows(b"id,item", TOPIC).decode([b"1,", b'2,""'])
    assert (batch["item"].to_pylist(), bad) == ([None, ""], [])


@given(st.lists(st.tuples(NUMBERS, TEXTS), min_size=1))
def test_what_python_writes_as_csv_is_read_as_it_was(rows: list[tuple[int, str]]) -> None:
    records = []
    for row in rows:
        text = io.StringIO()
        csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="").writerow(row)
        records.append(text.getvalue().encode())
    batch, bad = CsvRows(b"id,item", TOPIC).decode(records)
    assert bad == []
    assert list(zip(batch["id"].to_pylist(), batch["item"].to_pylist(), strict=True)) == rows


@pytest.mark.parametrize("record", [b"x,tea,1.5,[]", b"3,tea,dear,[]", b"3,tea,1.5,not json", b"3,tea"])
def test_rows_before_the_first_that_does_not_fit_are_kept(record: bytes) -> None:
    good = [b'1,tea,1.5,"[""a""]"', b"2,rum,,"]
    batch, [(index, reason)] = CsvRows(b"id,item,price,tags", TOPIC).decode([*good, record, b"4,gin,1,"])
    assert (batch["id"].to_pylist(), index) == ([1, 2], 2)
    assert batch["tags"].to_pylist() == [["a"], None]
    assert 'topic "orders"' in reason.message


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (b"id,itme", 'topic "orders" has no column "itme"'),
        (b"id,item,id", 'column "id" is twice in the header row'),
        (b"_offset", 'header row names no column of topic "orders"'),
    ],
)
def test_a_header_that_cannot_be_meant_is_refused(header: bytes, said: str) -> None:
    with pytest.raises(RowError, match=said):
        CsvRows(header, TOPIC)


def test_metadata_in_the_header_is_left_out() -> None:
    batch, _ = CsvRows(b"_offset,id", TOPIC).decode([b"17,1"])
    assert batch.schema.names == ["id"]


def test_a_cell_of_json_brings_no_member_of_another_column() -> None:
    declared = Topic("t", (parse("a VARIANT, b ARRAY<INT>, c STRING"),))
    rows, [(at, error)] = CsvRows(b"a,b,c", declared).decode(
        [b'"{""b"":[7]}",,x', b'"1,""b"":[7]",,y', b"2,,z"]
    )
    assert rows.to_pylist() == [{"a": '{"b":[7]}', "b": None, "c": "x"}]
    assert (at, error.message) == (
        1, 'row does not fit topic "t": column "a" is VARIANT, and the cell is not JSON'
    )  # fmt: skip
