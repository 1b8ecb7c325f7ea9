"""Free JSON: the value that was handed over, to the last digit, or a refusal."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.values import free_json
from headwater.values.columns import Misfit
from headwater.values.free_json import JsonText

texts = st.text('aé"\\:,{} \u2028\n', max_size=4)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
plain = st.none() | st.booleans() | numbers | texts
values = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)
)


@given(values)
def test_a_value_as_text_is_the_same_value_to_pythons_own_reader(value: Any) -> None:
    assert repr(json.loads(free_json.text(value))) == repr(value)


@pytest.mark.parametrize("value", [float("nan"), {"a": [float("inf")]}, {1, 2}, b"a", object()])
def test_what_json_has_no_form_for_is_refused(value: Any) -> None:
    with pytest.raises(Misfit):
        free_json.text(value)


def test_text_that_is_json_already_stays_as_it_is_written() -> None:
    assert free_json.text(JsonText('{ "a" : 1.50 }')) == '{ "a" : 1.50 }'
    assert JsonText('{ "a" : 1.50 }').exact() == {"a": Decimal("1.50")}


@given(st.dictionaries(st.text('ab :\\"é', max_size=3), values, max_size=4), st.sampled_from([None, 1]))
def test_members_are_cut_out_as_they_are_written(value: dict[str, Any], indent: int | None) -> None:
    written = json.dumps(value, indent=indent)
    found = free_json.members(written.encode(), value)
    assert {name: json.loads(each) for name, each in found.items()} == value
    assert all(each in written for each in found.values())


def test_a_known_member_that_is_there_twice_is_refused_and_an_unknown_one_is_not() -> None:
    line = b'{"a":1,"b":2,"a":3}'
    with pytest.raises(Misfit, match='"a" is there twice'):
        free_json.members(line, {"a"})
    assert free_json.members(line, {"b"})["b"] == "2"
    assert not free_json.is_exact(line, orjson.loads(line))


@given(st.integers(-(10**25), 10**25) | st.decimals("-1e9", "1e9", places=12) | st.just(Decimal("-0")))
def test_a_number_that_orjson_reads_as_another_one_is_doubtful(number: int | Decimal) -> None:
    line = b'{"a":%s}' % str(number).encode()
    parsed = orjson.loads(line)
    if free_json.is_exact(line, parsed):
        assert Decimal(repr(parsed["a"])) == number
    assert free_json.exact(line.decode())["a"] == number


def test_depth_counts_and_brackets_side_by_side_do_not() -> None:
    flat, deep = b"[" + b"[]," * 300 + b"[]]", b"[" * 260 + b"]" * 260
    assert not free_json.too_deep(flat, orjson.loads(flat))
    assert free_json.too_deep(deep, orjson.loads(deep))


DOUBTS = st.sampled_from([*'019.-+eEx\n "', "\\u003a", "\\u003A", "é", "12345678"])


@given(st.lists(DOUBTS, max_size=12).map("".join))
def test_numbers_in_doubt_are_seen_in_a_line_and_among_many(text: str) -> None:
    line = text.encode()
    assert free_json.doubtful(line + b"x" * 5_000) == free_json.doubtful(line + b"x")


@given(st.text('0123456789.-+eE, :"\\u3aA', max_size=40))
def test_many_lines_are_doubtful_where_one_of_them_is(text: str) -> None:
    padding = b'{"n": 1}\n' * (free_json._MANY // 9 + 1)
    assert free_json.doubtful(padding + text.encode()) == bool(free_json._DOUBTFUL.search(text.encode()))


@pytest.mark.parametrize("text", ["device0001", "e-0000123", "0123456789abcdef0123456789", "4e1000"])
def test_a_text_that_has_digits_is_not_doubtful(text: str) -> None:
    assert not free_json.doubtful(b'{"id": "%s"}' % text.encode())
    assert not free_json.doubtful(b'{"id":"%s"}\n' % text.encode() * 1000)
