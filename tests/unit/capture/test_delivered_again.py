"""What is delivered again after a kill between the appends to a table's topics: each change is told once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import headwater
from changes_kit import CAPTURED, newest
from headwater.capture.capture import Capture
from headwater.capture.settings import CaptureSettings
from headwater.errors import HeadwaterError
from headwater.log import Log
from replayed_source import Replayed, Step, lost

OLD, NEW = "the old and long value", "the new and long value"
KEPT = replace(CAPTURED, history=True)
TOPICS = ("customers", "customers.changes", "crm.dead", "crm.capture")


def captured(log: Log, steps: Sequence[Step], at_a_time: int = 100, saves: bool = True) -> None:
    """Capture all steps that were not, and save the state behind each delivery or not at all."""
    source = Replayed(steps, at_a_time)
    with Capture(source, log, "crm", [KEPT], CaptureSettings("dead_letter")) as capture:
        while not source.exhausted:
            capture.step()
            if saves:
                capture.save()
        capture.step()


def killed(log: Log, steps: Sequence[Step], at_a_time: int, topic: str, first: int) -> None:
    """Capture steps until nothing more can be appended to a topic."""
    with suppress(HeadwaterError), lost(topic, first):
        captured(log, steps, at_a_time, saves=False)


def history(log: Log) -> list[tuple[Any, ...]]:
    rows = [row for part in log.read("customers.changes") for row in part.to_pylist()]
    return [
        (row["position"], row["operation"], row["id"], row["after"] and row["after"]["name"]) for row in rows
    ]


def dead(log: Log) -> list[tuple[Any, ...]]:
    if "crm.dead" not in {topic.name for topic in log.topics()}:
        return []
    rows = [row for part in log.read("crm.dead") for row in part.to_pylist()]
    return [(row["position"], row["operation"], row["key"], row["reason"]) for row in rows]


def results(log: Log) -> tuple[object, ...]:
    return newest(log), history(log), dead(log)


def expected(steps: Sequence[Step]) -> tuple[object, ...]:
    """Return what is told of steps where nothing is killed, one by one."""
    with headwater.open("memory:") as log:
        captured(log, steps, 1)
        return results(log)


def test_the_history_does_not_tell_a_value_that_came_later() -> None:
    steps = [Step("insert", 1, OLD), Step("update", 1, unsent=True), Step("update", 1, NEW)]
    with headwater.open("memory:") as log:
        killed(log, steps, 3, "customers.changes", 1)
        captured(log, steps)
        assert [after for *_, after in history(log)] == [OLD, OLD, NEW]


def test_a_change_is_set_aside_once_and_none_is_left_out() -> None:
    steps = [
        Step("update", 1, unsent=True),  # nobody knows the value
        Step("insert", 1, OLD),
        Step("update", 2, "x", unfit=True),
    ]
    with headwater.open("memory:") as log:
        killed(log, steps, 1, "crm.dead", 1)
        captured(log, steps)
        assert dead(log) == expected(steps)[2]


def test_a_row_that_is_gone_from_the_topic_by_now_is_not_set_aside() -> None:
    steps = [
        Step("insert", 1, OLD),
        Step("update", 1, unsent=True),
        Step("delete", 1),
        Step("update", 2, "x", unfit=True),
    ]
    with headwater.open("memory:") as log:
        killed(log, steps, 1, "crm.capture", 3)
        captured(log, steps)
        assert results(log) == expected(steps)
        assert [key for _, _, key, _ in dead(log)] == ["[2]"]


KEYS = st.integers(0, 2)
STEPS = st.one_of(
    st.builds(Step, st.sampled_from(["insert", "update"]), KEYS, st.sampled_from([OLD, NEW, "short"])),
    st.builds(Step, st.just("update"), KEYS, unsent=st.just(True)),
    st.builds(Step, st.just("update"), KEYS, unfit=st.just(True)),
    st.builds(Step, st.just("delete"), KEYS),
    st.builds(Step, st.just("insert"), KEYS, unsent=st.just(True), was=st.just(3)),
    st.builds(Step, st.just("insert"), st.just(3), unsent=st.just(True), was=KEYS),
)
KILLS = st.tuples(st.integers(1, 4), st.sampled_from(TOPICS), st.integers(0, 6))


@given(st.lists(STEPS, min_size=1, max_size=10), st.lists(KILLS, max_size=4))
def test_whatever_is_killed_each_change_is_told_once(
    steps: list[Step], kills: list[tuple[int, str, int]]
) -> None:
    with headwater.open("memory:") as log:
        for at_a_time, topic, first in kills:
            killed(log, steps, at_a_time, topic, first)
        captured(log, steps)
        assert results(log) == expected(steps)
