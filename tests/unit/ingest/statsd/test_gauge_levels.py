"""Levels of gauges within a bound."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headwater.ingest.statsd.gauge_levels import GaugeKey, GaugeLevels

ROOM = 3
KEYS = [GaugeKey(name, "") for name in "abcdef"]


@given(st.lists(st.tuples(st.sampled_from(KEYS), st.integers(1, 9).map(float))))
def test_those_heard_of_last_are_known_and_the_others_counted(heard: list[tuple[GaugeKey, float]]) -> None:
    levels, known, forgotten = GaugeLevels(ROOM * KEYS[0].size), list[tuple[GaugeKey, float]](), 0
    for key, level in heard:
        levels.put(key, level)
        known = [each for each in known if each[0] != key] + [(key, level)]
        forgotten += len(known) > ROOM
        known = known[-ROOM:]
    assert [levels.get(key) for key in KEYS] == [dict(known).get(key, 0.0) for key in KEYS]
    assert levels.forgotten == forgotten


def test_long_names_take_more_of_the_room() -> None:
    levels = GaugeLevels(10_000)
    for number in range(5):
        levels.put(GaugeKey(f"{number}" * 4_000, "x"), 1.0)
    assert levels.forgotten == 3
