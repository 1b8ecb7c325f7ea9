"""Changes of a view: both rows, and none left out in silence."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import OffsetLost, UsageError
from headwater.views.changes import DELETE, INSERT, UPDATE, change, check_retained, resume_after
from headwater.views.view_version import FIRST, ViewVersion


def version(number: int, columns: str = "id BIGINT, n BIGINT") -> ViewVersion:
    return ViewVersion(1, "stock", number, columns, ("id",), True, 0, 1, (), None, True)


@pytest.mark.parametrize(
    ("kind", "name", "old", "new"),
    [
        (INSERT, "insert", None, {"id": 1, "n": 2}),
        (UPDATE, "update", {"id": 1, "n": 1}, {"id": 1, "n": 2}),
        (DELETE, "delete", {"id": 1, "n": 1}, None),
    ],
)
def test_a_change_has_the_sides_that_its_kind_has(
    kind: int, name: str, old: dict[str, Any] | None, new: dict[str, Any] | None
) -> None:
    made = change(7, kind, 3, old or {"id": None, "n": None}, new or {"id": None, "n": None}, ("id",))
    assert (made.kind, made.key, made.old, made.new) == (name, (1,), old, new)
    assert (made.sequence, made.batch) == (7, 3)


@given(since=st.integers(0, 50), earliest=st.integers(1, 50), kept=st.integers(0, 50))
def test_what_is_missed_is_counted_and_nothing_else_refused(since: int, earliest: int, kept: int) -> None:
    last = earliest - 1 + kept
    if since > last:
        with pytest.raises(UsageError, match=f"no change {since} yet"):
            check_retained("stock", since, earliest, last)
    elif since < earliest - 1:
        with pytest.raises(OffsetLost) as lost:
            check_retained("stock", since, earliest, last)
        assert since + lost.value.missed + 1 == lost.value.earliest == earliest
    else:
        check_retained("stock", since, earliest, last)


def test_nought_is_before_the_first_change_of_any_version() -> None:
    assert resume_after(version(1), 0) == 0
    assert resume_after(version(3), 0) == version(3).first == 2 << FIRST


def test_a_change_of_another_version_is_not_taken_for_one_of_this() -> None:
    assert resume_after(version(2), version(2).first + 5) == version(2).first + 5
    with pytest.raises(OffsetLost, match="has been rebuilt since change 5") as lost:
        resume_after(version(2), 5)
    assert lost.value.earliest == version(2).first + 1
