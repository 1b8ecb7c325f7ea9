"""What can be asked of a view."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.errors import HeadwaterError, UsageError
from headwater.values.keyed import declare
from headwater.views.query import ViewQuery, index_columns

CLICKS = declare('view "clicks"', "url STRING, day DATE, n BIGINT, tags ARRAY<INT>", ("url", "day"))


def test_a_prefix_is_compared_for_equality_and_a_range_with_the_column_after_it() -> None:
    query = ViewQuery(("a",), start="2026-01-01", end="2026-02-01")
    found = [(field.name, sign, value) for field, sign, value in query.conditions(CLICKS)]
    assert found == [("url", "=", "a"), ("day", ">=", "2026-01-01"), ("day", "<", "2026-02-01")]
    assert ViewQuery().conditions(CLICKS) == []


@pytest.mark.parametrize(
    "query",
    [
        ViewQuery(("a", None, 1)),
        ViewQuery((1,)),
        ViewQuery(start=1),
        ViewQuery(order="nn"),
        ViewQuery(order="tags"),
        ViewQuery(limit=-1),
        ViewQuery(limit=True),
    ],
)
def test_what_cannot_be_asked_is_refused(query: ViewQuery) -> None:
    with pytest.raises(HeadwaterError):
        query.check(CLICKS)


def test_a_whole_key_has_no_range() -> None:
    with pytest.raises(UsageError, match="by its whole key has no range"):
        ViewQuery(("a", "b"), start="c").conditions(CLICKS)


def test_the_key_settles_the_order_among_equals() -> None:
    assert ViewQuery().order_columns(CLICKS) == ["url", "day"]
    assert ViewQuery(order="n").order_columns(CLICKS) == ["n", "url", "day"]


@pytest.mark.parametrize(
    ("order", "columns"), [(None, []), ("day", []), ("n", ["url", "n", "day"]), ("url", [])]
)
def test_an_order_is_kept_within_the_leading_columns_of_the_key(order: Any, columns: list[str]) -> None:
    assert index_columns(CLICKS, order) == columns
