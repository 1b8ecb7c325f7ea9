"""Values row by row as an Arrow column, however nested, in the form of Python's own values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.values.columns import Form, Misfit, UnknownField, column, only


def leaf(values: list[Any], kind: pa.DataType) -> pa.Array:
    only(values, int, str)
    return pa.array(values, kind)


FORM = Form(leaf, struct=dict, pairs=lambda value, _: list(value.items()), items=list)
LENIENT = Form(leaf, struct=dict, pairs=lambda value, _: list(value.items()), items=list, strict=False)


def kinds() -> st.SearchStrategy[pa.DataType]:
    def nested(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
        structs = st.tuples(inner, inner).map(lambda pair: pa.struct([("x", pair[0]), ("y", pair[1])]))
        return inner.map(pa.list_) | inner.map(lambda kind: pa.map_(pa.string(), kind)) | structs

    return st.recursive(st.sampled_from([pa.int32(), pa.string()]), nested, max_leaves=3)


def values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_list(kind):
        present = st.lists(values(kind.value_type), max_size=3)
    elif pa.types.is_map(kind):
        present = st.dictionaries(st.text("ab", max_size=2), values(kind.item_type), max_size=3)
    elif pa.types.is_struct(kind):
        present = st.fixed_dictionaries({field.name: values(field.type) for field in kind})
    else:
        present = st.integers(-9, 9) if kind == pa.int32() else st.text("ab", max_size=2)
    return st.none() | present


@given(kinds().flatmap(lambda kind: st.tuples(st.just(kind), st.lists(values(kind), max_size=4))))
def test_a_column_has_the_values_that_were_handed_over(drawn: tuple[pa.DataType, list[Any]]) -> None:
    kind, given_values = drawn
    made = column(given_values, kind, FORM)
    made.validate(full=True)
    assert made.type == kind
    assert made.to_pylist(maps_as_pydicts="strict") == given_values


def test_a_field_that_is_not_there_is_null_and_differs_from_a_struct_that_is_null() -> None:
    kind = pa.struct([("x", pa.int32()), ("y", pa.string())])
    assert column([{}, None], kind, FORM).to_pylist() == [{"x": None, "y": None}, None]


def test_an_unknown_field_is_named_with_its_path_or_left_out() -> None:
    kind = pa.struct([("x", pa.list_(pa.struct([("y", pa.int32())])))])
    with pytest.raises(UnknownField) as refused:
        column([{"x": [{"y": 1, "z": 2}]}], kind, FORM, "c")
    assert (refused.value.path, refused.value.name) == ("c.x", "z")
    assert column([{"x": [{"y": 1, "z": 2}]}], kind, LENIENT).to_pylist() == [{"x": [{"y": 1}]}]


def test_only_the_types_that_are_listed_pass_and_none_always_does() -> None:
    only([1, None, "a"], int, str)
    for wrong in (True, 1.0, b"a"):  # a bool is an int to Python, and no integer to a topic
        with pytest.raises(Misfit):
            only([1, wrong], int, str)


def test_a_value_deep_inside_that_does_not_fit_refuses_the_column() -> None:
    with pytest.raises(Misfit):
        column([[{"a": 1}], [{"a": 1.5}]], pa.list_(pa.map_(pa.string(), pa.int32())), FORM)
