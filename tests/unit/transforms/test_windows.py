"""What windows refuse when they are called, and which operator each makes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from headwater import windows
from headwater.errors import UsageError
from headwater.operators.spec import Side
from headwater.operators.windows.hopping import Hopping
from headwater.operators.windows.session import Session
from headwater.operators.windows.sliding import Sliding
from unit.operators.stepping import SCHEMA
from unit.operators.windows.windowed import Count

MINUTE = timedelta(minutes=1)


def built(transform: Any) -> Any:
    return transform.build(Side(SCHEMA, "at"))


def test_each_window_makes_its_operator() -> None:
    tumbling = built(windows.tumbling("1 minute", "k, x", n=Count()))
    assert (tumbling.size, tumbling.hop, tumbling.key) == (MINUTE, MINUTE, ("k", "x"))
    hopping = built(windows.hopping("1 minute", "20 seconds", ["k"], offset="5 seconds", n=Count()))
    assert (hopping.hop, hopping.offset) == (MINUTE / 3, timedelta(seconds=5))
    sliding = built(windows.sliding("1 minute", n=Count()))
    assert (sliding.size, sliding.key) == (MINUTE, ())
    session = built(windows.session(MINUTE, by="k", late="correct", keep="1 hour", n=Count()))
    assert (session.gap, session.windowing.keep) == (MINUTE, timedelta(hours=1))
    assert [type(each) for each in (tumbling, hopping, sliding, session)] == [
        Hopping,
        Hopping,
        Sliding,
        Session,
    ]


def test_early_results_are_asked_for() -> None:
    transform = windows.tumbling("1 minute", emit="early", every="10 seconds", n=Count())
    assert built(transform).every == timedelta(seconds=10)
    assert built(windows.tumbling("1 minute", emit="early", every=100, n=Count())).every == 100
    transform = windows.session("1 minute", emit="early", every="10 seconds", n=Count())
    assert built(transform).every == timedelta(seconds=10)
    assert built(windows.session("1 minute", emit="early", every=100, n=Count())).every == 100
    assert built(windows.session("1 minute", n=Count())).every is None
    assert built(windows.sliding("1 minute", emit="early", every=1, n=Count())).every == 1


def test_early_sliding_windows_go_by_rows() -> None:
    with pytest.raises(UsageError) as caught:
        windows.sliding("1 minute", emit="early", every="1 second", n=Count())
    assert caught.value.message == 'sliding windows cannot be published early every "1 second"'


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"emit": "soon"}, "session does not know emit='soon'"),
        ({"emit": "early"}, 'session with emit="early" needs to know when'),
        ({"emit": "early", "every": 0}, "session cannot publish windows every 0 rows"),
        ({"every": 5}, 'session takes every= only with emit="early"'),
    ],
)
def test_early_sessions_that_cannot_be_meant_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        windows.session("1 minute", n=Count(), **settings)
    assert caught.value.message == message


def test_settings_of_other_windows_are_told_whose_they_are() -> None:
    for transform, setting, hint in (
        (windows.sliding, "compare", "only tumbling and hopping windows take compare="),
        (windows.session, "offset", "only tumbling and hopping windows take offset="),
    ):
        with pytest.raises(UsageError) as caught:
            transform("1 minute", n=Count(), **{setting: "1 hour"})  # type: ignore[operator]
        assert caught.value.hint == hint


def test_rows_need_an_event_time() -> None:
    with pytest.raises(UsageError, match="session needs to know when events happened"):
        windows.session("1 minute", n=Count()).build(Side(SCHEMA, None))


@pytest.mark.parametrize(
    ("settings", "message", "hint"),
    [
        ({}, "tumbling has nothing to aggregate", "n=agg.count()"),
        ({"n": 3}, 'tumbling cannot take "n" as an aggregate', "write n=agg.count()"),
        (
            {"n": Count(), "kep": "1 hour"},
            'tumbling cannot take "kep" as an aggregate',
            'did you mean "keep"?',
        ),
        ({"a.b": Count()}, 'tumbling cannot call an aggregate "a.b"', "without a dot"),
        ({"_n": Count()}, 'tumbling cannot call an aggregate "_n"', "an underscore"),
        ({"late": Count()}, 'tumbling cannot call an aggregate "late"', "another name"),
        ({"n": Count(), "late": "corect"}, "tumbling does not know late='corect'", 'did you mean "correct"?'),
        ({"n": Count(), "late": "correct"}, 'tumbling with late="correct" needs to know how long', "keep="),
        ({"n": Count(), "keep": "1 hour"}, 'tumbling keeps nothing with late="drop"', 'late="correct"'),
        ({"n": Count(), "emit": "soon"}, "tumbling does not know emit='soon'", None),
        ({"n": Count(), "emit": "early"}, 'tumbling with emit="early" needs to know when', "every="),
        (
            {"n": Count(), "emit": "early", "every": 0},
            "tumbling cannot publish windows every 0 rows",
            "1 or more",
        ),
        ({"n": Count(), "every": "1 second"}, 'tumbling takes every= only with emit="early"', 'emit="early"'),
    ],
)
def test_what_cannot_be_meant_is_refused(settings: dict[str, Any], message: str, hint: str | None) -> None:
    with pytest.raises(UsageError) as caught:
        windows.tumbling("1 minute", **settings)
    assert caught.value.message == message
    assert hint is None or hint in (caught.value.hint or "")


def test_a_hop_that_leaves_gaps_is_refused() -> None:
    with pytest.raises(UsageError, match='hopping windows of "1 minute" cannot begin every "2 minutes"'):
        windows.hopping("1 minute", "2 minutes", n=Count())
