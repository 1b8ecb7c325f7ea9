from __future__ import annotations

from dataclasses import make_dataclass
from typing import Any

import pytest

import headwater
from headwater.errors import SchemaError, UsageError
from headwater.sourcing.event_schema import META, EventSchema
from headwater.sourcing.event_topic import prepared


def schema(**fields: Any) -> EventSchema:
    return EventSchema("person", [make_dataclass("Changed", fields.items(), frozen=True)], {})


def test_a_topic_is_made_and_gets_columns_as_events_get_fields() -> None:
    with headwater.open("memory:") as log:
        first = prepared(log, "person", schema(age=int), 1)
        assert (first.key, first.event_time) == (("key",), "recorded_at")
        assert prepared(log, "person", schema(age=int), 1) == first
        second = prepared(log, "person", schema(name=str), 1)
        assert second.schema.names == [*META, "age", "name"]


def test_a_field_that_changes_its_type_is_refused_with_what_to_do() -> None:
    with headwater.open("memory:") as log:
        prepared(log, "person", schema(age=int), 1)
        with pytest.raises(SchemaError, match='field "age"') as refused:
            prepared(log, "person", schema(age=str), 1)
        assert refused.value.detail == "BIGINT there, STRING now"


def test_a_topic_of_something_else_is_refused() -> None:
    with headwater.open("memory:") as log:
        log.create_topic("person", "id BIGINT")
        with pytest.raises(UsageError, match="not one of a decider's events"):
            prepared(log, "person", schema(age=int), 1)
