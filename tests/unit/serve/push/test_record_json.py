"""Records as JSON, tombstones and headers among them."""

from __future__ import annotations

import base64
import json

import pyarrow as pa

import headwater
from headwater.serve.push.record_json import encode_records


def test_a_record_is_told_with_where_it_lies_and_a_tombstone_has_no_value() -> None:
    with headwater.open("memory:") as log:
        log.create_topic("prices", "id BIGINT, n BIGINT", key="id", cleanup="compact")
        with log.producer("prices", id="shop") as producer:
            producer.send({"id": 1, "n": 2}, headers={"trace": "x"})
            producer.delete(1)
        table = pa.Table.from_batches(log.read("prices", meta=True)).combine_chunks()
    one, two = map(json.loads, encode_records(table.to_batches()[0], ("id",)))
    assert (one["partition"], one["offset"], one["key"], one["value"]) == (0, 0, [1], {"id": 1, "n": 2})
    assert one["headers"] == {"trace": base64.b64encode(b"x").decode()} and one["producer"] == "shop"
    assert (two["offset"], two["key"], two["value"], two["deleted"]) == (1, [1], None, True)
