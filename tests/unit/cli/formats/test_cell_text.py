"""Values as text: on one line, and harmless."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.cli.formats.cell_text import cells
from headwater.schema import TIMESTAMP, parse
from headwater.values.csv_text import as_text, is_plain


@given(st.text("aé\n\r\t\x00\x1b\x9b\x7f\u2028\u202e") | st.text())
def test_no_text_breaks_a_line_or_commands_a_terminal(text: str) -> None:
    [cell] = cells(pa.array([text]), pa.field("a", pa.string()))
    assert not any(ord(each) < 32 or 127 <= ord(each) < 160 or each == "\u202e" for each in cell)
    assert len(cell.splitlines()) <= 1


def test_text_without_control_characters_is_left_as_it_is() -> None:
    assert cells(pa.array(['Zoë\'s "tea"', None, ""]), pa.field("a", pa.string())) == [
        'Zoë\'s "tea"',
        "null",
        "",
    ]


def test_whole_seconds_are_shown_without_their_fraction() -> None:
    noon = datetime(2026, 1, 2, 12, tzinfo=UTC)
    column = pa.array([noon, noon.replace(microsecond=5)], TIMESTAMP)
    short, long = cells(column, pa.field("at", TIMESTAMP))
    assert short.endswith("12:00:00Z")
    assert long.endswith("12:00:00.000005Z")


def test_nested_values_are_json_and_binary_is_base64() -> None:
    nested = pa.array([{"x": [1, None]}], pa.struct([("x", pa.list_(pa.int32()))]))
    assert as_text(nested, pa.field("a", nested.type)).to_pylist() == ['{"x":[1,null]}']
    binary = pa.array([b"\x00\xff"], pa.binary())
    assert as_text(binary, pa.field("a", binary.type)).to_pylist() == ["AP8="]


@pytest.mark.parametrize(
    ("column", "plain"),
    [("BIGINT", True), ("STRING", True), ("BINARY", False), ("ARRAY<INT>", False), ("VARIANT", False)],
)
def test_csv_has_a_form_of_its_own_for_plain_columns(column: str, plain: bool) -> None:
    assert is_plain(parse(f"a {column}").field("a")) is plain
