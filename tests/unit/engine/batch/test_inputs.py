"""How the upstreams of a node tell time, as the source of Spark is told."""

from __future__ import annotations

from headwater import Pipeline
from headwater.engine.batch.inputs import timing

SECOND = 1_000_000


def shop() -> Pipeline:
    made = Pipeline("shop")
    made.source("orders", "at TIMESTAMP", event_time="at", lateness="1 minute", idle="5 seconds")
    made.source("late", "at TIMESTAMP", event_time="at", max_ahead="1 hour")
    made.table("prices", "id BIGINT, at TIMESTAMP", key="id", event_time="at")
    made.table("rates", "id BIGINT, at TIMESTAMP", key="id", event_time="at", idle="1 hour")

    @made.stream()
    def seen(orders: object) -> object:
        return orders

    return made


def told(name: str, *, patient: bool = False) -> dict[str, int | str]:
    options = timing(shop()[name], patient)
    return {key: value if value == "marks" else int(value) / SECOND for key, value in options.items()}


def test_a_source_waits_as_declared_and_believes_ten_minutes_ahead() -> None:
    assert told("orders") == {"lateness": 60, "idle": 5, "silence": 5, "max_ahead": 600}
    assert told("late") == {"lateness": 0, "idle": 10, "max_ahead": 3600}


def test_a_table_tells_time_as_a_source_with_nothing_said() -> None:
    assert told("prices") == {"lateness": 0, "idle": 10, "max_ahead": 600}
    assert told("rates") == {"lateness": 0, "idle": 3600, "silence": 3600, "max_ahead": 600}


def test_under_test_nobody_is_idle_and_events_are_of_any_time_unless_the_source_says_so() -> None:
    forever = 365_000 * 86_400
    assert told("orders", patient=True) == {"lateness": 60, "idle": forever}
    assert told("late", patient=True) == {"lateness": 0, "idle": forever, "max_ahead": 3600}
    assert told("prices", patient=True) == {"lateness": 0, "idle": forever}


def test_a_stream_goes_by_its_marks_alone() -> None:
    assert told("seen")["lateness"] == "marks"
    assert "max_ahead" not in told("seen")
