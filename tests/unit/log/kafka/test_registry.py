"""Declarations as the internal topic has them: what is read back is what was declared. No broker."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import orjson
import pytest

from headwater import schema as schemas
from headwater import topic as topics
from headwater.log.kafka import registry
from headwater.log.kafka.registry import Registry
from headwater.topic import Topic


def stored(topic: Topic) -> dict[str, Any]:
    body = {"id": topic.id, "name": topic.name, **topic.settings()}
    body["schemas"] = [schemas.ddl(each) for each in topic.schemas]
    return cast(dict[str, Any], orjson.loads(orjson.dumps(body)))


@pytest.fixture
def entries() -> Registry:
    return Registry(cast(Any, None))  # nothing here asks the cluster


def declared(id: str = "t1") -> Topic:
    columns = "id BIGINT NOT NULL, at TIMESTAMP"
    made = topics.create("orders", columns, key="id", event_time="at", partitions=3, retention="2 days")
    return replace(topics.altered(made, schema=f"{columns}, more STRING"), id=id)


def test_a_declaration_is_read_back_with_its_identity_and_all_its_schemas() -> None:
    topic = declared()
    assert len(topic.schemas) == 2
    assert registry._declared(stored(topic)) == topic


def test_the_last_declaration_of_a_name_counts_and_a_tombstone_ends_it(entries: Registry) -> None:
    entries._apply("topic/orders", stored(declared("t1")))
    entries._apply("topic/orders", stored(declared("t2")))
    assert entries.declared("orders") == declared("t2")
    entries._apply("topic/orders", None)
    assert entries.declared("orders") is None


def test_an_owner_is_that_of_one_topic_and_not_of_a_later_one_of_its_name(entries: Registry) -> None:
    entries._apply("topic/orders", stored(declared("t1")))
    entries._apply(registry._owner_key("t1", "till"), {"owner": "one"})
    assert (entries.owner("t1", "till"), entries.owner("t2", "till")) == ("one", None)
    entries._apply(registry._owner_key("t1", "till"), None)
    assert entries.owner("t1", "till") is None
    assert entries.declared("orders") is not None
