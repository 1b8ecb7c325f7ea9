from __future__ import annotations

import headwater
from headwater.log.expected_version import Condition
from headwater.sourcing.scope import Scope


def test_the_events_of_a_scope_come_once_and_in_order_and_its_conditions_exclude_them() -> None:
    with headwater.open("memory:") as log:
        topic = log.create_topic("t", "key STRING, n BIGINT", key="key")
        with log.conditional_producer("t") as producer:
            for n, tags in enumerate([["a"], ["b"], ["a", "b"], ["c"]]):
                producer.append([{"key": str(n % 2), "n": n}], tags=tags)
            both = Scope(None, (("b",), ("a",)))
            assert [row["n"] for row in both.rows(producer, 0, ["n"])] == [0, 1, 2]
            assert [row["n"] for row in both.rows(producer, 2, ["n"])] == [2]
            assert both.end(producer) == 4
            assert [each.tags for each in both.conditions(3, topic)] == [("b",), ("a",)]
            one = Scope("1")
            assert [row["n"] for row in one.rows(producer, 0, ["n"])] == [1, 3]
            assert one.end(producer) == 4
            assert one.conditions(4, topic) == [Condition("1", after=4)]
