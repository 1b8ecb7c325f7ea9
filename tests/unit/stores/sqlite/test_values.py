"""Every type of a schema goes into SQLite and comes back, and sorts there as it should."""

from __future__ import annotations

import math
import sqlite3
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import schema as schemas
from headwater.errors import UsageError
from headwater.stores.sqlite import values
from soaking import examples

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
MICROS = st.integers(-(10**15), 10**17)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "BOOLEAN": st.booleans(),
    "TINYINT": st.integers(-128, 127),
    "SMALLINT": st.integers(-(2**15), 2**15 - 1),
    "INT": st.integers(-(2**31), 2**31 - 1),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "FLOAT": st.floats(width=32),
    "DOUBLE": st.floats(),
    "STRING": TEXT,
    "BINARY": st.binary(max_size=8),
    "DATE": st.dates(),
    "TIMESTAMP": MICROS.map(lambda us: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us)),
    "TIMESTAMP_NTZ": MICROS.map(lambda us: datetime(1970, 1, 1) + timedelta(microseconds=us)),
    "DECIMAL(18,3)": st.integers(-(10**18) + 1, 10**18 - 1).map(lambda n: Decimal(n).scaleb(-3)),
    "DECIMAL(38,5)": st.integers(-(10**27), 10**27).map(lambda n: Decimal(n).scaleb(-5)),
    "VARIANT": st.sampled_from(['{"a": [1, 2]}', "null", "1.50", '"text"']),
    "ARRAY<DOUBLE>": st.lists(st.none() | st.floats(allow_nan=False), max_size=3),
    "MAP<INT, DECIMAL(20,2)>": st.dictionaries(
        st.integers(0, 9), st.none() | st.integers(0, 10**9).map(lambda n: Decimal(n).scaleb(-2)), max_size=3
    ).map(lambda pairs: list(pairs.items())),
    "STRUCT<a: BINARY, b: ARRAY<STRING>>": st.fixed_dictionaries(
        {"a": st.none() | st.binary(max_size=4), "b": st.none() | st.lists(st.none() | TEXT, max_size=3)}
    ),
}
SORTED = [name for name in VALUES if "<" not in name and name != "VARIANT"]


def through_sqlite(column: pa.Array, field: pa.Field, order: str = "rowid") -> list[Any]:
    db = sqlite3.connect(":memory:")
    db.execute(f"CREATE TABLE t (x {values.sql_type(field)})")
    db.executemany("INSERT INTO t VALUES (?)", [(value,) for value in values.encode(column, field)])
    found = [x for (x,) in db.execute(f"SELECT x FROM t ORDER BY {order}")]  # noqa: S608
    db.close()
    return found


@pytest.mark.parametrize("name", ["FLOAT", "DOUBLE", "ARRAY<DOUBLE>"])
def test_a_zero_keeps_its_sign(name: str) -> None:
    field = schemas.parse(f"x {name}").field(0)
    column = pa.array([[-0.0, None, 0.0]] if "<" in name else [-0.0, None, 0.0], field.type)
    back = values.decode(through_sqlite(column, field), field)
    assert repr(back.to_pylist()) == repr(column.to_pylist())


@pytest.mark.parametrize("name", VALUES)
@examples(30)
@given(data=st.data())
def test_a_value_comes_back_as_it_was(name: str, data: st.DataObject) -> None:
    field = schemas.parse(f"x {name}").field(0)
    given_values = data.draw(st.lists(st.none() | VALUES[name], min_size=1, max_size=6))
    column = pa.array(given_values, field.type)
    back = values.decode(through_sqlite(column, field), field)
    assert back.type == field.type
    assert repr(back.to_pylist()) == repr(column.to_pylist())  # as text, since NaN is not equal to itself


@pytest.mark.parametrize("name", SORTED)
@examples(30)
@given(data=st.data())
def test_sqlite_sorts_values_as_spark_does(name: str, data: st.DataObject) -> None:
    field = schemas.parse(f"x {name}").field(0)
    given_values = data.draw(st.lists(VALUES[name], min_size=1, max_size=8))
    column = pa.array(given_values, field.type)
    back = values.decode(through_sqlite(column, field, "x"), field).to_pylist()
    rank = (lambda v: (math.isnan(v), v)) if name in ("FLOAT", "DOUBLE") else lambda v: v
    if name == "STRING":
        rank = str.encode  # type: ignore[assignment]  # by code points, as UTF-8 sorts
    expected = sorted(column.to_pylist(), key=rank)
    assert [rank(v) for v in back if v == v] == [rank(v) for v in expected if v == v]
    assert [v != v for v in back] == [v != v for v in expected]


def test_a_slice_of_a_column_is_stored_without_its_neighbours() -> None:
    for name in ("DECIMAL(18,3)", "DECIMAL(38,5)"):
        field = schemas.parse(f"x {name}").field(0)
        column = pa.array([Decimal(1), Decimal(2), None, Decimal(-4)], field.type).slice(1)
        assert values.decode(values.encode(column, field), field).equals(column)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BIGINT", "1"),
        ("BIGINT", 1.5),
        ("BIGINT", None),
        ("TINYINT", 300),
        ("STRING", 1),
        ("DATE", datetime(2026, 1, 2, 3, tzinfo=UTC)),
        ("TIMESTAMP", "2026"),
    ],
)
def test_a_reader_is_told_of_a_value_of_another_type(name: str, value: Any) -> None:
    field = schemas.parse(f"x {name}").field(0)
    with pytest.raises(UsageError, match=f'column "x" of view "v" is {name}'):
        values.encode_one(value, field, 'view "v"')


def test_a_reader_may_give_dates_and_times() -> None:
    day, instant = schemas.parse("d DATE, t TIMESTAMP")
    assert values.encode_one(date(1970, 1, 3), day, "") == 2
    assert values.encode_one(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), instant, "") == 1_000_000
