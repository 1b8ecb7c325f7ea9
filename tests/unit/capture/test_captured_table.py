"""The topics of a captured table."""

from __future__ import annotations

from dataclasses import replace

import pytest

import headwater
from changes_kit import CAPTURED
from headwater.errors import TopicError


def test_its_topics_are_made_once() -> None:
    with headwater.open("memory:") as log:
        both = replace(CAPTURED, history=True)
        both.declare(log)
        both.declare(log)
        table, changes = log.topic("customers"), log.topic("customers.changes")
    assert (table.compacted, table.event_time, table.key) == (True, "committed_at", ("id",))
    assert (changes.compacted, changes.event_time, changes.schema.names[:2]) == (
        False,
        "committed_at",
        ["id", "operation"],
    )


def test_a_column_of_the_table_may_be_its_event_time() -> None:
    assert replace(CAPTURED, event_time="at").topic_schema == CAPTURED.schema


def test_a_topic_that_is_something_else_is_refused() -> None:
    with headwater.open("memory:") as log:
        log.create_topic("customers", "id BIGINT")
        with pytest.raises(TopicError, match='is not what table "customers" is captured into'):
            CAPTURED.declare(log)
