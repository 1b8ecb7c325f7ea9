"""One version of a view, as a catalog has it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import Position
from headwater.errors import SchemaError, UsageError
from headwater.values.keyed import declare
from headwater.views.view_version import (
    FIRST,
    ViewVersion,
    check_numbers,
    check_same,
    first_change,
    positions,
    unknown,
    version_of_change,
)


def version(number: int, columns: str = "id BIGINT, n BIGINT") -> ViewVersion:
    return ViewVersion(1, "stock", number, columns, ("id",), True, 0, 1, (), None, True)


VERSIONS, CHANGES = st.integers(1, 1 << 20), st.integers(1, 1 << FIRST)


@given(VERSIONS, VERSIONS, CHANGES, CHANGES)
def test_no_two_versions_share_the_number_of_a_change(one: int, other: int, m: int, n: int) -> None:
    numbers = {(one, m): first_change(one) + m, (other, n): first_change(other) + n}
    assert len(set(numbers.values())) == len(numbers)
    assert all(number < 1 << 63 for number in numbers.values()), "they are whole numbers of a database"


def test_positions_are_read_as_they_are_kept() -> None:
    kept = (Position("orders", {0: 3, 1: 9}), Position("clicks", {0: 1}))
    assert positions("\n".join(map(str, kept))) == kept
    assert positions("") == ()


def test_a_version_keeps_its_columns_and_its_key() -> None:
    what = 'view "stock"'
    check_same(version(1), declare(what, "id BIGINT, n BIGINT", "id"))
    for columns, key in (("id BIGINT, n INT", "id"), ("id BIGINT, n BIGINT", "n"), ("id BIGINT", "id")):
        with pytest.raises(SchemaError, match="other columns or another key") as refused:
            check_same(version(1), declare(what, columns, key))
        assert refused.value.hint == "build version 2 and publish it"


@pytest.mark.parametrize(("number", "feed"), [(0, 1), (-1, 1), (1 << 20, 1), ("1", 1), (1, 0), (1, 1.5)])
def test_what_is_no_version_or_no_number_of_changes_is_refused(number: Any, feed: Any) -> None:
    with pytest.raises(UsageError):
        check_numbers(number, feed)
    check_numbers(None, 1)


def test_who_asks_for_what_is_not_there_is_told_what_is() -> None:
    assert unknown("stok", None, ["stock"], []).hint == 'did you mean "stock"?'
    assert unknown("stock", None, [], []).hint == "the store has no views yet"
    error = unknown("stock", 3, ["stock"], [1, 2])
    assert (error.message, error.hint) == ('view "stock" has no version 3', "versions: 1, 2")
    assert "no published version" in unknown("stock", None, ["stock"], [1]).message


@given(st.integers(1, 1000), st.integers(1, (1 << FIRST) - 1))
def test_a_change_has_the_version_that_numbered_it(version: int, number: int) -> None:
    assert version_of_change(first_change(version) + number) == version
