"""Whatever a plan is refused for, a hint says what to write instead; it fits what the rows are of."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.engine.plan import refusals
from headwater.engine.plan.refusals import Refusal


class Grouping:
    """A step of a plan that groups by an expression."""

    def __init__(self, by: str):
        self._by = by

    def groupingExpressions(self) -> str:
        return self._by


def of(kind: str, by: str = "who") -> Refusal:
    plan: Any = Grouping(by)
    return refusals.of(kind, plan)


@pytest.mark.parametrize("kind", [*refusals._PLANS, "StreamingRelation", "OfTomorrow"])
def test_every_refusal_says_what_is_wrong_why_and_what_to_write(kind: str) -> None:
    found = of(kind)
    assert found.what and found.detail and refusals.hint(found, (), ())


def test_a_step_that_nobody_knows_is_refused_by_its_name() -> None:
    assert of("OfTomorrow").what == "uses what Spark calls OfTomorrow, which is not row by row"


def test_windows_of_spark_are_told_apart_from_other_groups() -> None:
    assert "windows.session" in of("Aggregate", "session_window(at, 5 minutes)").hint
    assert "windows.tumbling, or windows.hopping" in of("Aggregate", "window(at, 1 minute)").hint
    assert "latest" in of("Aggregate").hint


def test_the_hint_is_that_of_tables_only_where_all_rows_are_tables() -> None:
    group = of("Aggregate")
    assert "tables.group" in refusals.hint(group, {"people"}, {"people"})
    for read in ({"people", "orders"}, set()):
        assert "tables.group" not in refusals.hint(group, {"people"}, read)


@pytest.mark.parametrize(
    ("left", "right", "instead"),
    [
        ("people", "items", "joins.tables"),
        ("orders", "people", "joins.lookup"),
        ("orders", "clicks", "joins.within"),
    ],
)
def test_a_join_is_refused_for_the_one_that_fits_its_sides(left: str, right: str, instead: str) -> None:
    join = refusals.joined(frozenset({left}), frozenset({right}))
    assert join.what == f'joins "{left}" and "{right}" by Spark\'s join'
    assert instead in refusals.hint(join, {"people", "items"}, ())
