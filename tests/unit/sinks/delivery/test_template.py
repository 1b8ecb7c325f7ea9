"""Texts with places for columns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import UsageError
from headwater.sinks.delivery.template import TextTemplate, one_line


@given(st.dictionaries(st.sampled_from(["a", "b"]), st.text(), min_size=2), st.text())
def test_values_are_put_in_as_they_are_and_never_read_as_places(row: dict[str, str], between: str) -> None:
    escaped = between.replace("{", "{{").replace("}", "}}")
    template = TextTemplate("{a}" + escaped + "{b}")
    template.check("mail", ["a", "b"])
    assert template.render(row) == row["a"] + between + row["b"]


@given(st.text())
def test_a_line_is_one_line(text: str) -> None:
    line = one_line(text)
    assert len(line.splitlines()) <= 1 and len(line) <= 200


@pytest.mark.parametrize("text", ["{missing}", "{a.b}", "{a[0]}", "{a!r}", "{}", "{a", "a}"])
def test_what_is_no_column_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        TextTemplate(text).check("mail", ["a"])


def test_what_is_null_is_left_out() -> None:
    assert TextTemplate("[{a}]").render({"a": None}) == "[]"
