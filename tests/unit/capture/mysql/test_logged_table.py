"""A table as the binlog describes it, beside the catalog's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
from pymysqlreplication.constants import FIELD_TYPE

from headwater.capture.change import SourceColumn
from headwater.capture.mysql.catalog import MySqlTable, made
from headwater.capture.mysql.column_types import MySqlColumn
from headwater.capture.mysql.logged_table import logged_table


def logged(name: str, kind: int, **others: Any) -> Any:
    usual = {"is_primary": False, "unsigned": False, "character_set_name": None, "set_values": None}
    return SimpleNamespace(name=name, type=kind, **{**usual, **others})


def known(*columns: tuple[str, str, pa.DataType]) -> MySqlTable:
    found = tuple(MySqlColumn(SourceColumn(name, arrow, kind), kind) for name, kind, arrow in columns)
    return made("t", found, (columns[0][0],))


ID = logged("id", FIELD_TYPE.LONG, is_primary=True)


def test_where_both_have_the_same_it_is_the_catalogs_table() -> None:
    catalog = known(("id", "int", pa.int32()), ("name", "text", pa.string()))
    name = logged("name", FIELD_TYPE.BLOB, character_set_name="utf8")
    assert logged_table("t", [ID, name], catalog) == catalog


def test_a_column_that_is_gone_comes_from_the_binlog() -> None:
    note = logged("note", FIELD_TYPE.VARCHAR, character_set_name="utf8", max_length=40)
    found = logged_table("t", [ID, note], known(("id", "int", pa.int32()), ("new", "int", pa.int32())))
    assert [(each.name, each.type) for each in found.table.columns] == [
        ("id", pa.int32()),
        ("note", pa.string()),
    ]
    assert found.table.key == ("id",)


def test_a_column_that_has_another_type_now_has_the_one_it_had() -> None:
    count = logged("count", FIELD_TYPE.LONG, unsigned=True)
    found = logged_table(
        "t", [ID, count], known(("id", "int", pa.int32()), ("count", "varchar", pa.string()))
    )
    assert found.table.columns[1].type == pa.int64()


def test_a_table_that_is_gone_is_the_binlogs() -> None:
    data = logged("data", FIELD_TYPE.BLOB, character_set_name="binary")
    found = logged_table("t", [ID, data], None)
    assert (found.table.key, found.table.columns[1].type) == (("id",), pa.binary())


def test_members_of_a_set_are_in_the_order_of_the_binlog() -> None:
    tags = logged("tags", FIELD_TYPE.SET, set_values=["x", "y"])
    found = logged_table("t", [ID, tags], known(("id", "int", pa.int32()), ("tags", "set", pa.string())))
    assert found.columns[1].members == ("x", "y")
