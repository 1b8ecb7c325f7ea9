"""The rows that come out of a join, and the names of their columns."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.errors import UsageError
from headwater.operators.joined import Joined
from headwater.operators.pairing import Pairing

LEFT = pa.schema([("id", pa.int64()), ("who", pa.string()), ("at", pa.timestamp("us", "UTC"))])
RIGHT = pa.schema([("customer", pa.string()), ("at", pa.timestamp("us", "UTC")), ("id", pa.int32())])
ON = Pairing((("who", "customer"),))


def one(schema: pa.Schema, *values: object) -> pa.Table:
    return pa.table([[value] for value in values], schema=schema)


def test_a_column_whose_name_is_taken_gets_the_prefix() -> None:
    joined = Joined("join", ON, LEFT, RIGHT, prefix="customer_")
    assert joined.schema.names == ["id", "who", "at", "customer_at", "customer_id"]
    rows = joined.rows(one(LEFT, 1, "ada", 5), one(RIGHT, "ada", 6, 3))
    assert rows.select(["id", "who", "customer_id"]).to_pylist() == [
        {"id": 1, "who": "ada", "customer_id": 3}
    ]


def test_two_columns_of_one_name_without_a_prefix_are_refused() -> None:
    with pytest.raises(UsageError, match='join has two columns "at"') as raised:
        Joined("join", ON, LEFT, RIGHT)
    assert "prefix" in str(raised.value.hint)


def test_a_prefix_that_makes_a_name_that_is_taken_is_refused() -> None:
    right = pa.schema([("customer", pa.string()), ("r_id", pa.int64()), ("id", pa.int64())])
    with pytest.raises(UsageError, match='join has two columns "r_id"'):
        Joined("join", ON, LEFT, right, prefix="r_")


def test_where_a_side_may_be_missing_the_other_one_has_the_key() -> None:
    left = pa.table({"id": [1, None], "who": ["ada", None], "at": [5, None]}, schema=LEFT)
    right = pa.table({"customer": ["ada", "bob"], "at": [6, 7], "id": [8, 9]}, schema=RIGHT)
    for optional, who in ((True, ["ada", "bob"]), (False, ["ada", None])):
        rows = Joined("join", ON, LEFT, RIGHT, prefix="r_", optional=optional).rows(left, right)
        assert rows.column_names == ["id", "who", "at", "r_at", "r_id"]
        assert rows["who"].to_pylist() == who
        assert rows["r_id"].to_pylist() == [8, 9]
