"""Columns in another type: every value is the one that was handed over, or the cast is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import topic
from headwater.errors import RowError
from headwater.values.cast import cast
from headwater.values.columns import Misfit

TOPIC = topic.create("t", "c BIGINT")
REFUSED = (Misfit, pa.ArrowException)
integers = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]


def converted(column: pa.Array, to: pa.DataType) -> Any:
    found = cast(column, to, "c", TOPIC)
    assert found.type == to
    found.validate(full=True)
    return found.to_pylist()


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=5), st.sampled_from(integers))
def test_integers_are_kept_where_all_fit_and_refused_otherwise(
    values: list[int | None], to: pa.DataType
) -> None:
    bound = 2 ** (to.bit_width - 1)
    column = pa.array(values, pa.int64())
    if all(value is None or -bound <= value < bound for value in values):
        assert converted(column, to) == values
    else:
        with pytest.raises(REFUSED):
            cast(column, to, "c", TOPIC)


@given(st.lists(st.none() | st.floats(-1e6, 1e6) | st.integers(-99, 99).map(float), max_size=5))
def test_a_fraction_is_never_cut_off(values: list[float | None]) -> None:
    column = pa.array(values, pa.float64())
    if all(value is None or value.is_integer() for value in values):
        assert converted(column, pa.int32()) == values
    else:
        with pytest.raises(REFUSED):
            cast(column, pa.int32(), "c", TOPIC)


def test_a_double_is_not_rounded_into_a_decimal() -> None:
    assert converted(pa.array([0.25, None]), pa.decimal128(5, 2)) == [Decimal("0.25"), None]
    with pytest.raises(pa.ArrowInvalid, match=r"0\.125 would be changed"):
        cast(pa.array([0.25, 0.125]), pa.decimal128(5, 2), "c", TOPIC)


@pytest.mark.parametrize(
    ("column", "to"),
    [
        (pa.array(["a", None, "a"]).dictionary_encode(), pa.string()),
        (pa.array([1, 1, None], pa.int64()), pa.decimal128(5, 2)),
        (pa.array([[1], None, [], [2, 3]], pa.large_list(pa.int8())), pa.list_(pa.int64())),
        (pa.array([[(1, 2)], None, []], pa.map_(pa.int8(), pa.int8())), pa.map_(pa.int64(), pa.int32())),
        (pa.array([datetime(2026, 1, 2, tzinfo=UTC), None]), pa.timestamp("us", "UTC")),
        (pa.nulls(2), pa.list_(pa.int8())),
    ],
    ids=str,
)
@pytest.mark.parametrize("start", [0, 1])
def test_what_is_nested_or_encoded_keeps_its_values_also_in_a_slice(
    column: pa.Array, to: pa.DataType, start: int
) -> None:
    assert converted(column.slice(start), to) == column.to_pylist()[start:]


def test_fields_of_a_struct_go_by_name_and_one_that_lacks_is_null() -> None:
    column = pa.array([{"b": 1, "a": "x"}, None])
    to = pa.struct([("a", pa.string()), ("more", pa.bool_()), ("b", pa.int8())])
    assert converted(column, to) == [{"a": "x", "more": None, "b": 1}, None]


def test_a_field_that_the_topic_lacks_is_refused_with_its_path() -> None:
    column, to = pa.array([{"inner": {"a": 1, "bb": 2}}]), pa.struct([("a", pa.int64()), ("b", pa.int64())])
    with pytest.raises(RowError, match=r'no field "c\.inner\.bb"') as refused:
        cast(column, pa.struct([("inner", to)]), "c", TOPIC)
    assert refused.value.hint == 'did you mean "b"?'


@pytest.mark.parametrize(
    ("column", "to"),
    [
        (pa.array([1]), pa.string()),
        (pa.array(["1"]), pa.int64()),
        (pa.array([1]), pa.timestamp("us")),
        (pa.array([0]).cast(pa.timestamp("us", "Europe/Berlin")), pa.timestamp("us")),
        (pa.array([True]), pa.int8()),
    ],
    ids=str,
)
def test_a_value_of_another_kind_is_not_converted(column: pa.Array, to: pa.DataType) -> None:
    with pytest.raises(pa.ArrowTypeError, match="is not converted"):
        cast(column, to, "c", TOPIC)
