"""Settings of several operators are refused in the same words."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.errors import UsageError
from headwater.operators.spec import Side
from headwater.transforms.settings import check_choice, required_event_time

SCHEMA = pa.schema([("at", pa.timestamp("us", "UTC"))])


def test_a_word_that_is_no_choice_is_answered_with_the_choices_and_the_nearest() -> None:
    check_choice("within", "how", "left", ("left", "inner"))
    with pytest.raises(UsageError) as caught:
        check_choice("within", "how", "lefft", ("left", "inner"))
    assert caught.value.message == "within does not know how='lefft'"
    assert caught.value.detail == 'it is one of "left", "inner"'
    assert caught.value.hint == 'did you mean "left"?'


def test_rows_without_an_event_time_are_named_by_their_side() -> None:
    assert required_event_time("within", Side(SCHEMA, "at")) == "at"
    with pytest.raises(UsageError, match="and its left rows have no event time"):
        required_event_time("within", Side(SCHEMA, None), "its left rows")
