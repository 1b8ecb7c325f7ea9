"""All keys of a cache read back, while a runner may write."""

from __future__ import annotations

import json
import uuid

import pyarrow as pa

import redis_server
from headwater.sinks import Batch
from headwater.sinks.cache.connection import connect
from headwater.sinks.cache.sink import CacheSink
from headwater.sinks.change_version import change_version


def opened(server: redis_server.Server, prefix: str) -> CacheSink:
    return CacheSink(server.url, "id BIGINT, name STRING", "id", prefix=prefix)


def test_more_keys_than_one_look_finds_are_each_returned_once(redis: redis_server.Server) -> None:
    prefix, rows = f"r[{uuid.uuid4().hex[:8]}*:", pa.table({"id": range(12_000), "name": ["x"] * 12_000})
    with opened(redis, prefix) as sink:
        sink.begin()
        sink.commit(Batch(0, rows))
        contents = sink.read_back()
        ids = [id for batch in contents.rows for id in batch.column("id").to_pylist()]
        assert contents.settled()
    assert sorted(ids) == list(range(12_000))


def test_a_batch_that_is_committed_or_under_way_meanwhile_is_noticed(redis: redis_server.Server) -> None:
    prefix = f"r{uuid.uuid4().hex[:8]}:"
    with opened(redis, prefix) as sink, connect(redis.url) as client:
        sink.begin()
        sink.commit(Batch(0, pa.table({"id": [1], "name": ["ada"]})))
        contents = sink.read_back()
        sink.commit(Batch(1, pa.table({"id": [2], "name": ["bob"]})))
        assert sum(map(len, contents.rows)) == 2
        assert not contents.settled()
        part = {"_version": change_version(2, 1), "id": 3}  # of the next one
        client.set(f"{prefix}3", json.dumps(part, separators=(",", ":")))
        contents = sink.read_back()
        assert sum(map(len, contents.rows)) == 3
        assert (contents.batch, contents.settled()) == (1, False)


def test_keys_of_other_types_are_named_as_what_is_no_row(redis: redis_server.Server) -> None:
    prefix = f"r{uuid.uuid4().hex[:8]}:"
    with opened(redis, prefix) as sink, connect(redis.url) as client:
        sink.begin()
        sink.commit(Batch(0, pa.table({"id": [1], "name": ["ada"]})))
        client.hset(f"{prefix}2", "name", "bob")
        client.rpush(f"{prefix}jobs", "a", "b")
        contents = sink.read_back()
        assert [row for batch in contents.rows for row in batch.to_pylist()] == [{"id": 1, "name": "ada"}]
        assert contents.settled()
    others = {each["place"]: each["text"] for each in contents.unreadable}
    assert others == {"2": "a hash, and no text", "jobs": "a list, and no text"}


def test_a_short_prefix_does_not_find_our_own_records(redis: redis_server.Server) -> None:
    with opened(redis, "headwate") as sink:
        sink.begin()
        sink.commit(Batch(0, pa.table({"id": [1], "name": ["ada"]})))
        contents = sink.read_back()
        assert sum(map(len, contents.rows)) == 1
        assert contents.unreadable == []
