"""A cache on a real Redis server: the public suite, older changes, pieces, crashes and refusals."""

from __future__ import annotations

import json
import random
import signal
import threading
import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

import redis_server
from headwater import Position
from headwater.errors import Fenced, RowError, SchemaError, SinkRefused, SinkUnavailable, UsageError
from headwater.sinks import Batch
from headwater.sinks.cache import sink as cache
from headwater.sinks.cache.connection import connect
from headwater.sinks.cache.sink import CacheSink
from headwater.testing.sink_suite import KEY, SCHEMA, Check, TargetUnderTest, checks
from repeated_batches import AGAIN, BATCHES, Changes, committed, rows

COLUMNS = "id BIGINT NOT NULL, name STRING"


def named(check: Check) -> str:
    return getattr(check, "__name__", "check")


@pytest.fixture
def prefix() -> str:
    return f"t{uuid.uuid4().hex[:12]}:"


def stored(server: redis_server.Server, prefix: str) -> dict[str, dict[str, Any]]:
    """Return what a reader sees, by key, without versions."""
    with connect(server.url) as client:
        keys = list(client.scan_iter(match=f"{prefix}*", count=10_000))
        values = client.mget(keys) if keys else []
    rows = {
        key.decode().removeprefix(prefix): json.loads(text) for key, text in zip(keys, values, strict=True)
    }
    return {key: {name: row[name] for name in row if name != "_version"} for key, row in rows.items()}


def opened(server: redis_server.Server, prefix: str, **options: Any) -> CacheSink:
    return CacheSink(server.url, COLUMNS, "id", prefix=prefix, **options)


def target(server: redis_server.Server, prefix: str) -> TargetUnderTest:
    def save() -> Callable[[], None]:
        with connect(server.url) as client:
            names = [*client.scan_iter(match=f"*{prefix}*", count=10_000)]
            copies = {name: client.dump(name) for name in names}

        def restore() -> None:
            with connect(server.url) as client:
                client.delete(*client.scan_iter(match=f"*{prefix}*", count=10_000))
                for name, copy in copies.items():
                    client.restore(name, 0, copy)

        return restore

    def visible() -> list[dict[str, Any]]:
        return [{"n": None, "note": None} | row for row in stored(server, prefix).values()]

    return TargetUnderTest(lambda: CacheSink(server.url, SCHEMA, KEY, prefix=prefix), visible, save)


@pytest.mark.parametrize("check", checks(), ids=named)
def test_a_cache_is_effectively_once(check: Check, redis: redis_server.Server, prefix: str) -> None:
    check(target(redis, prefix))


def test_a_row_is_json_under_its_prefix_and_key(redis: redis_server.Server, prefix: str) -> None:
    with opened(redis, prefix) as sink:
        sink.begin()
        sink.commit(Batch(0, rows((42, 'née "Ada"'), (7, None)), (Position("customers", {0: 5}),), 9))
    assert stored(redis, prefix) == {"42": {"id": 42, "name": 'née "Ada"'}}
    with connect(redis.url) as client:
        progress = json.loads(client.hget(f"headwater:cache:{prefix}", "progress"))
    assert progress["clock"] == 9
    assert Position.parse(progress["positions"][0]) == Position("customers", {0: 5})


def test_several_key_columns_are_a_json_array(redis: redis_server.Server, prefix: str) -> None:
    with CacheSink(redis.url, "shop STRING, item BIGINT, n INT", ("shop", "item"), prefix=prefix) as sink:
        sink.begin()
        sink.commit(Batch(0, pa.table({"shop": ["a"], "item": [1], "n": pa.array([3], pa.int32())})))
    assert stored(redis, prefix) == {'["a",1]': {"shop": "a", "item": 1, "n": 3}}


def test_an_older_change_never_takes_the_place_of_a_newer_one(
    redis: redis_server.Server, prefix: str
) -> None:
    """The record of how far the cache is goes back, as after a failover that lost it; the rows do not."""
    with opened(redis, prefix) as sink, connect(redis.url) as client:
        sink.begin()
        sink.commit(Batch(5, rows((1, "new"), (2, "new"), (3, "new"))))
        sink.commit(Batch(6, rows((2, None))))
        client.hset(f"headwater:cache:{prefix}", "batch", "3")
        sink.begin()
        assert sink.commit(Batch(4, rows((1, "old"), (2, "old"), (3, None), (4, "old"))))
    assert {key: row["name"] for key, row in stored(redis, prefix).items()} == {
        "1": "new",
        "3": "new",
        "4": "old",
    }


def test_a_deletion_is_remembered_for_minutes_and_forgotten_by_a_newer_row(
    redis: redis_server.Server, prefix: str
) -> None:
    gone = f"headwater:gone:{prefix}1"
    with opened(redis, prefix) as sink, connect(redis.url) as client:
        sink.begin()
        sink.commit(Batch(0, rows((1, "a"))))
        sink.commit(Batch(1, rows((1, None))))
        assert 500_000 < client.pttl(gone) <= 600_000
        sink.commit(Batch(2, rows((1, "b"))))
        assert not client.exists(gone)
    assert stored(redis, prefix) == {"1": {"id": 1, "name": "b"}}


def test_rows_go_by_themselves_after_their_time_to_live(redis: redis_server.Server, prefix: str) -> None:
    with opened(redis, prefix, ttl="1 hour") as sink, connect(redis.url) as client:
        sink.begin()
        sink.commit(Batch(0, rows((1, "a"))))
        assert 3_500_000 < client.pttl(f"{prefix}1") <= 3_600_000
        assert client.pttl(f"headwater:cache:{prefix}") == -1


def test_a_large_batch_is_written_in_pieces_and_its_number_with_the_last(
    redis: redis_server.Server, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "PIECE_ROWS", 7)
    monkeypatch.setattr(cache, "PIECE_BYTES", 300)
    many = rows(*((number, f"name {number}") for number in range(1000)))
    with opened(redis, prefix) as sink:
        sink.begin()
        assert sink.commit(Batch(0, many))
        assert not sink.commit(Batch(0, many))
    assert len(stored(redis, prefix)) == 1000


def test_a_crash_between_two_pieces_leaves_a_part_until_the_batch_comes_again(
    redis: redis_server.Server, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "PIECE_ROWS", 10)
    monkeypatch.setattr(cache, "_PIPELINE", 1)
    many = Batch(0, rows(*((number, "new") for number in range(35))))

    def crash(name: str) -> None:
        if name == "cache: pieces written":
            raise KeyboardInterrupt

    from headwater.sinks import crash as points

    with opened(redis, prefix) as sink:
        sink.begin()
        points.watch(crash)
        try:
            with pytest.raises(KeyboardInterrupt):
                sink.commit(many)
        finally:
            points.watch(None)
    assert len(stored(redis, prefix)) == 10
    with opened(redis, prefix) as sink:
        assert sink.begin() == -1
        assert sink.commit(many)
    assert len(stored(redis, prefix)) == 35


def test_no_piece_of_a_replaced_runner_is_written(
    redis: redis_server.Server, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "PIECE_ROWS", 2)
    with opened(redis, prefix) as first, opened(redis, prefix) as second:
        first.begin()
        second.begin()
        with pytest.raises(Fenced, match="taken over"):
            first.commit(Batch(0, rows(*((number, "old") for number in range(9)))))
    assert stored(redis, prefix) == {}


def test_a_server_that_was_emptied_is_noticed_by_the_next_commit_and_the_next_start(
    redis: redis_server.Server, prefix: str
) -> None:
    with opened(redis, prefix) as sink, connect(redis.url) as client:
        sink.begin()
        sink.commit(Batch(0, rows((1, "a"))))
        receipt = sink.receipt()
        client.delete(f"{prefix}1", f"headwater:cache:{prefix}")
        with pytest.raises(SinkRefused, match="lost batches"):
            sink.commit(Batch(1, rows((2, "b"))))
    with opened(redis, prefix) as sink:
        assert sink.begin() == -1
        assert sink.resume(receipt)


def test_rows_without_the_record_of_how_far_they_go_are_refused(
    redis: redis_server.Server, prefix: str
) -> None:
    with opened(redis, prefix) as sink, connect(redis.url) as client:
        sink.begin()
        sink.commit(Batch(7, rows((1, "a"))))
        client.delete(f"headwater:cache:{prefix}")
        with pytest.raises(SinkRefused, match="record of how far they go is gone"):
            sink.begin()


def test_a_server_that_is_killed_in_the_middle_of_batches_has_each_of_them_whole(
    redis: redis_server.Server, prefix: str
) -> None:
    """With ``appendfsync always``: what was committed is there, and the batch in flight is whole or out."""
    chance = random.Random(5)

    def batch(number: int) -> Batch:
        keys = range(number, number + 2_000)
        return Batch(number, rows(*((key, None if key % 7 == 0 else f"{number}") for key in keys)))

    def come_to(last: int) -> dict[int, str]:
        newest = {key: number for number in range(last + 1) for key in range(number, number + 2_000)}
        return {key: f"{number}" for key, number in newest.items() if key % 7}

    with opened(redis, prefix) as sink:
        number = sink.begin() + 1
        for _ in range(8):
            killer = threading.Timer(chance.uniform(0.02, 0.2), redis.stop, [signal.SIGKILL])
            killer.start()
            with pytest.raises(SinkUnavailable, match="cannot be used"):
                while sink.commit(batch(number)):
                    number += 1
            killer.join()
            redis.start()
            seen = {int(key): row["name"] for key, row in stored(redis, prefix).items()}
            assert seen in (come_to(number - 1), come_to(number))
            assert sink.commit(batch(number)) == (seen == come_to(number - 1))
            number += 1
        assert {int(key): row["name"] for key, row in stored(redis, prefix).items()} == come_to(number - 1)
    assert number > 16, "batches were committed between the crashes"


def test_a_server_that_loses_commits_in_a_crash_is_refused(prefix: str) -> None:
    with redis_server.running_server("--appendfsync", "no") as server, opened(server, prefix) as sink:
        sink.begin()
        sink.commit(Batch(0, rows((1, "a"))))
        server.stop(signal.SIGKILL)
        for file in server.directory.rglob("*.aof"):
            file.write_bytes(b"")  # what a power loss leaves of a file that was not synced
        server.start()
        with pytest.raises(SinkRefused, match="lost batches"):
            sink.commit(Batch(1, rows((2, "b"))))


def test_a_server_that_is_away_is_unavailable_and_a_wrong_password_is_refused(prefix: str) -> None:
    with CacheSink("redis://127.0.0.1:1/0", COLUMNS, "id", prefix=prefix) as sink:
        with pytest.raises(SinkUnavailable, match="cannot be used") as away:
            sink.begin()
        assert not isinstance(away.value, SinkRefused)
    with redis_server.running_server("--requirepass", "wonderland-7391") as server:
        url = server.url.replace("//", "//:rabbit-hole-99@")
        with CacheSink(url, COLUMNS, "id", prefix=prefix) as sink:
            with pytest.raises(SinkRefused, match="refuses us") as refused:
                sink.begin()
            assert "rabbit" not in f"{refused.value} {refused.value.__cause__} {sink!r}"


def test_another_key_and_names_of_our_own_are_refused(redis: redis_server.Server, prefix: str) -> None:
    with opened(redis, prefix) as sink:
        sink.begin()
    with (
        CacheSink(redis.url, COLUMNS, "name", prefix=prefix) as sink,
        pytest.raises(SchemaError, match="another key"),
    ):
        sink.begin()
    with pytest.raises(UsageError, match="prefix"):
        CacheSink(redis.url, COLUMNS, "id", prefix="headwater:x")
    with pytest.raises(SchemaError, match="reserved"):
        CacheSink(redis.url, "id BIGINT, _version BIGINT", "id", prefix=prefix)
    with opened(redis, prefix) as sink, pytest.raises(UsageError, match="not begun"):
        sink.commit(Batch(0, rows()))


def test_a_row_that_does_not_fit_writes_nothing(redis: redis_server.Server, prefix: str) -> None:
    with opened(redis, prefix) as sink:
        sink.begin()
        with pytest.raises(RowError):
            sink.commit(Batch(0, pa.table({"id": pa.array([1, None], pa.int64()), "name": ["a", "b"]})))
    assert stored(redis, prefix) == {}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(batches=BATCHES, again=AGAIN)
def test_batches_that_are_repeated_come_to_a_dictionary(
    batches: list[Changes], again: list[int], redis: redis_server.Server
) -> None:
    prefix = f"h{uuid.uuid4().hex[:12]}:"
    with opened(redis, prefix) as sink:
        expected = committed(sink, batches, again)
    assert {int(key): row["name"] for key, row in stored(redis, prefix).items()} == expected
