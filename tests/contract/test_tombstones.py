from __future__ import annotations

import pyarrow as pa
import pytest

from contract_kit import rows_of
from headwater import Log
from headwater.errors import TopicError, UsageError


def test_a_deleted_key_is_read_as_a_tombstone(log: Log, name: str) -> None:
    log.create_topic(name, "id BIGINT, name STRING NOT NULL", key="id", cleanup="compact")
    with log.producer(name) as producer:
        producer.send({"id": 1, "name": "Ada"})
        producer.send({"id": 2, "name": "Bob"})
        producer.delete(1)
        producer.delete({"id": 2})
    assert rows_of(log, name) == [
        {"id": 1, "name": "Ada", "_deleted": False},
        {"id": 2, "name": "Bob", "_deleted": False},
        {"id": 1, "name": None, "_deleted": True},
        {"id": 2, "name": None, "_deleted": True},
    ]


def test_a_composite_key_is_deleted_by_all_of_its_columns(log: Log, name: str) -> None:
    log.create_topic(name, "shop STRING, day DATE, n INT", key="shop,day", cleanup="compact", partitions=4)
    with log.producer(name) as producer:
        producer.send({"shop": 'a "quoted", name', "day": 20000, "n": 1})
        producer.delete({"shop": 'a "quoted", name', "day": 20000})
    first, second = rows_of(log, name, meta=True)
    assert (second["shop"], second["day"]) == (first["shop"], first["day"])
    assert (second["_deleted"], second["n"]) == (True, None)
    assert first["_partition"] == second["_partition"]


def test_only_a_compacted_topic_has_tombstones(log: Log, name: str) -> None:
    log.create_topic(name, "id BIGINT", key="id")
    with log.producer(name) as producer, pytest.raises(UsageError, match="not compacted"):
        producer.delete(1)


def test_a_compacted_topic_stays_compacted(log: Log, name: str) -> None:
    log.create_topic(name, "id BIGINT", key="id", cleanup="compact")
    with pytest.raises(TopicError, match="cannot stop being compacted"):
        log.alter_topic(name, cleanup="delete")


def test_rows_and_tombstones_of_one_table_keep_their_order(log: Log, name: str) -> None:
    log.create_topic(name, "id BIGINT, item STRING NOT NULL", key="id", cleanup="compact")
    rows = pa.table({"id": [1, 1, 2], "item": ["tea", None, "rum"], "_deleted": [False, True, False]})
    with log.producer(name) as producer:
        producer.send({"id": 1, "item": "gin"})
        producer.send_changes(rows)
    assert rows_of(log, name) == [{"id": 1, "item": "gin", "_deleted": False}, *rows.to_pylist()]
