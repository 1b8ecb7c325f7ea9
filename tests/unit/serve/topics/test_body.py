"""What a body says: the text of each event, as it was sent."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import RowError
from headwater.serve.http.problem import HttpProblem
from headwater.serve.topics.body import Body, media_type

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["},{", "a\n", '"', "}\\,{", "[1,2]"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "},{"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.lists(JSON, max_size=5), st.sampled_from([None, 1]))
def test_an_array_is_cut_into_its_elements(values: list[object], indent: int | None) -> None:
    cut = Body(json.dumps(values, indent=indent).encode(), "application/json").values()
    assert [json.loads(each) for each in cut] == values


def test_numbers_stay_as_they_are_written() -> None:
    body = Body(b'[{"n":1.10000000000000000000001},{"n":1e3}]', "application/json")
    assert body.values() == [b'{"n":1.10000000000000000000001}', b'{"n":1e3}']


def test_an_array_that_is_none_is_refused() -> None:
    for text in (b"[1,", b"[1] 2", b"[NaN]", b"[1,]"):
        with pytest.raises(RowError):
            Body(text, "application/json").values()


def test_the_type_of_a_body_is_understood_with_its_settings() -> None:
    assert media_type("") == media_type("Application/JSON; charset=utf-8") == "application/json"
    with pytest.raises(HttpProblem):
        media_type("text/html")
