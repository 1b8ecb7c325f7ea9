from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import RowError
from headwater.topic import Topic, create
from headwater.values import rows
from headwater.values.plain_rows import MOST, from_plain_rows

TOPIC = create("t", "id STRING NOT NULL, n BIGINT, small INT, flag BOOLEAN, at TIMESTAMP", key="id")
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.text(max_size=5), st.floats(allow_nan=False),
    st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=5)), None])), st.just("\ud800"),
)  # fmt: skip
ROWS = st.lists(
    st.dictionaries(st.sampled_from(["id", "n", "small", "flag", "at", "other"]), VALUES),
    min_size=1,
    max_size=4,
)


@given(ROWS)
def test_what_is_converted_is_what_the_conversion_in_bulk_gives(given_rows: list[dict[str, Any]]) -> None:
    made = from_plain_rows(given_rows, TOPIC)
    if made is not None:
        assert made.equals(rows.from_rows(given_rows, TOPIC))


@pytest.mark.parametrize(
    "row",
    [{"n": 1}, {"id": None}, {"id": "a", "other": 1}, {"id": "a", "n": True}, {"id": "a", "n": 1.0},
     {"id": "a", "small": 2**40}, {"id": "a" * 2_000_000}, {"id": "a", "at": datetime(2026, 1, 1)}],
    ids=["no key", "null key", "unknown", "truth", "float", "large number", "large", "no zone"],
)  # fmt: skip
def test_what_has_to_be_looked_at_is_left_to_others(row: dict[str, Any]) -> None:
    assert from_plain_rows([row], TOPIC) is None


def test_plain_rows_are_converted() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    made = from_plain_rows([{"id": "a", "n": 5, "flag": True, "at": at}, {"id": "b"}], TOPIC)
    assert made is not None
    assert made.to_pylist()[0] == {"id": "a", "n": 5, "small": None, "flag": True, "at": at}


def test_many_rows_and_other_columns_are_left_to_others() -> None:
    assert from_plain_rows([{"id": "a"}] * (MOST + 1), TOPIC) is None
    assert from_plain_rows([{"id": "a"}], create("t", "id STRING, x DOUBLE")) is None
    assert from_plain_rows([{"id": "a"}], create("t", "id STRING, x VARIANT")) is None
    assert isinstance(TOPIC, Topic)
    with pytest.raises(RowError):
        rows.from_rows([{"n": 1}], TOPIC)
