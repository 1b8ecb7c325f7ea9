"""Tables as the lines that declare them."""

from __future__ import annotations

import pyarrow as pa
import pytest

import headwater
from headwater.capture.change import SourceColumn, SourceTable
from headwater.capture.describe import declarations


def table(name: str, *columns: tuple[str, pa.DataType], key: tuple[str, ...] = ("id",)) -> SourceTable:
    return SourceTable(name, tuple(SourceColumn(column, type, "X", False) for column, type in columns), key)


def test_a_line_declares_columns_and_key() -> None:
    (line,) = declarations([table("customers", ("id", pa.int64()), ("price", pa.decimal128(8, 2)))], "crm")
    assert line == (
        'shop.table("customers", "id BIGINT, price DECIMAL(8,2)", key="id", captured="crm.customers")'
    )


def test_a_key_of_several_columns_is_a_list() -> None:
    (line,) = declarations([table("t", ("a", pa.int64()), ("b", pa.string()), key=("b", "a"))], "crm")
    assert line == 'shop.table("t", "a BIGINT, b STRING", key=["b", "a"], captured="crm.t")'


def test_a_long_line_is_broken() -> None:
    columns = [(f"column_{number}", pa.string()) for number in range(9)]
    (lines,) = declarations([table("t", ("id", pa.int64()), *columns)], "crm")
    assert lines.splitlines()[0] == "shop.table("
    assert lines.splitlines()[1] == '    "t",'
    assert lines.splitlines()[-1] == ")"


def test_what_cannot_be_captured_is_a_comment() -> None:
    without_key, odd = declarations(
        [table("lines", ("text", pa.string()), key=()), table("odd", ("id", pa.duration("s")))], "crm"
    )
    assert without_key == '# table "lines" cannot be captured: it has no primary key'
    assert odd.startswith('# table "odd" cannot be captured: Arrow type duration[s]')


@pytest.mark.parametrize(
    ("name", "declared"),
    [
        ("crm.customers", "crm_customers"),
        ("2024", "t_2024"),
        ("class", "class_"),
        ('a "b"', "a_b"),
        ("é", "t_"),
    ],
)
def test_names_are_made_fit_for_a_pipeline(name: str, declared: str) -> None:
    (line,) = declarations([table(name, ("id", pa.int64()), ('a`b" c', pa.string()))], "crm")
    shop = headwater.Pipeline("shop", log="memory:")
    arguments = {}

    class Recorded:
        def table(self, name: str, schema: str, *, key: str, captured: str) -> None:
            shop.table(name, schema, key=key)
            arguments.update(name=name, captured=captured)

    exec(line, {"shop": Recorded()})
    assert arguments == {"name": declared, "captured": f"crm.{name}"}
