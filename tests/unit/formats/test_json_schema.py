"""JSON after the id of its schema."""

from __future__ import annotations

from headwater import topic
from headwater.formats import json_schema

ORDERS = topic.create("orders", "id BIGINT, name STRING", format="json_schema")


def test_json_is_read_behind_the_prefix_and_each_other_value_is_named() -> None:
    prefix = b"\0\0\0\0\7"
    values = [
        prefix + b'{"id": 1, "more": 2}', b'{"id": 2}', prefix + b'{"id": "x"}', prefix + b'{"id": 3}', b""
    ]  # fmt: skip
    batch, bad = json_schema.decode(values, ORDERS)
    assert batch.to_pylist() == [{"id": 1, "name": None}, {"id": 3, "name": None}]
    assert [(at, error.message) for at, error in bad] == [
        (1, "value does not begin with the id of its schema"),
        (2, 'row does not fit topic "orders": column "id" is BIGINT'),
        (4, "value does not begin with the id of its schema"),
    ]
