from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from contract_kit import EVERY_TYPE, Backend, rows_of
from headwater import Log
from headwater.errors import BufferFull, Fenced, HeadwaterError, RecordTooLarge, RowError, UsageError
from headwater.values import keys

AT = datetime(2026, 1, 2, 3, 4, 5, 678900, tzinfo=UTC)


def test_every_type_comes_back_as_it_was_sent(log: Log, name: str) -> None:
    log.create_topic(name, EVERY_TYPE, key="id")
    row = {
        "flag": True, "tiny": -128, "small": 2**15 - 1, "n": -(2**31), "id": 2**63 - 1, "f": 0.5,
        "d": math.pi, "price": Decimal("1234567890.12"), "name": "Zoë 🚀\n", "raw": b"\x00\xff",
        "day": date(2026, 1, 2), "at": AT,
        "local": AT.replace(tzinfo=None), "tags": ["a", None, ""], "counts": [("x", 1), ("y", None)],
        "place": {"city": "Oslo", "at": {"x": 1, "y": None}},
        "anything": '{"deep":[1,{"a":null}]}',
    }  # fmt: skip
    empty = dict.fromkeys(row) | {"id": 7}
    with log.producer(name) as producer:
        producer.send(row | {"anything": {"deep": [1, {"a": None}]}})
        producer.send(empty)
    assert rows_of(log, name) == [row, empty]


def test_a_topic_of_free_json_takes_any_value(log: Log, name: str) -> None:
    log.create_topic(name, "JSON")
    with log.producer(name) as producer:
        for value in ({"a": [1, 2]}, [1, "x"], "text", 5):
            producer.send(value)  # type: ignore[arg-type]
    assert [row["value"] for row in rows_of(log, name)] == ['{"a":[1,2]}', '[1,"x"]', '"text"', "5"]


def test_arrow_pandas_and_rows_are_batches(log: Log, name: str) -> None:
    log.create_topic(name, "id BIGINT, name STRING")
    with log.producer(name) as producer:
        producer.send_batch(pa.table({"id": [1], "name": ["arrow"]}))
        producer.send_batch(pa.record_batch({"name": ["batch"], "id": pa.array([2], pa.int32())}))
        producer.send_batch(pd.DataFrame({"id": [3], "name": ["pandas"]}))
        producer.send_batch([{"id": 4, "name": "rows"}, {"id": 5}])
        producer.send_batch([])
        producer.send_batch(pa.table({"id": pa.array([], pa.int64())}))
    assert [tuple(row.values()) for row in rows_of(log, name)] == [
        (1, "arrow"), (2, "batch"), (3, "pandas"), (4, "rows"), (5, None),
    ]  # fmt: skip


def test_flush_returns_the_position_reached(log: Log, name: str) -> None:
    log.create_topic(name, "id BIGINT", partitions=2)
    with log.producer(name) as producer:
        assert producer.flush().offsets == {}
        for i in range(5):
            producer.send({"id": i})
        reached = producer.flush()
    assert reached.topic == name
    assert log.resolve(name, "latest").passed(reached)
    assert sum(len(b) for b in log.read(name, end=reached)) == 5


def test_a_key_goes_where_kafka_would_put_it(log: Log, name: str) -> None:
    log.create_topic(name, "user STRING, n INT", key="user", partitions=7)
    users = [f"user-{i}" for i in range(50)] + ["", "é", "a" * 100]
    with log.producer(name) as producer:
        producer.send_batch([{"user": user, "n": i} for i, user in enumerate(users)])
    expected = keys.partitions([pa.array(users)], 7)
    found = {row["user"]: row["_partition"] for row in rows_of(log, name, meta=True)}
    assert found == dict(zip(users, expected.tolist(), strict=True))


def test_records_keep_their_producers_order_within_a_partition(log: Log, name: str) -> None:
    log.create_topic(name, "user STRING, n INT", key="user", partitions=3)
    with log.producer(name) as producer:
        for n in range(3000):
            producer.send({"user": f"u{n % 11}", "n": n})
    for partition in range(3):
        order = [row["n"] for row in rows_of(log, name, partition=partition)]
        assert order == sorted(order)
    assert len(rows_of(log, name)) == 3000


def test_a_record_keeps_producer_sequence_headers_and_three_times(log: Log, name: str) -> None:
    log.create_topic(name, "id BIGINT, at TIMESTAMP", event_time="at")
    before = datetime.now(UTC) - timedelta(seconds=1)
    sent, occurred = AT + timedelta(seconds=9), AT + timedelta(seconds=5)
    with log.producer(name, id="till-7") as producer:
        producer.send(
            {"id": 1, "at": AT}, headers={"trace": "abc", "raw": b"\xff"}, sent=sent, occurred=occurred
        )
        producer.send({"id": 2, "at": AT})
    first, second = rows_of(log, name, meta=True)
    assert (first["_producer"], second["_producer"]) == ("till-7", "till-7")
    assert second["_sequence"] == first["_sequence"] + 1
    assert dict(first["_headers"]) == {"trace": b"abc", "raw": b"\xff"}
    assert not second["_headers"]
    assert (first["_occurred"], first["_sent"]) == (occurred, sent)
    assert second["_occurred"] == AT
    assert before < second["_sent"] < datetime.now(UTC) + timedelta(seconds=1)
    assert before < first["_received"] <= second["_received"] < datetime.now(UTC) + timedelta(seconds=1)
    assert (first["_partition"], first["_offset"], first["_deleted"]) == (0, 0, False)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"id": 1, "amout": 2.0}, 'has no column "amout"'),
        ({"id": "one"}, 'column "id" is BIGINT'),
        ({"id": 2**63}, 'column "id" is BIGINT'),
        ({"amount": 1.0}, 'key column "id" .* is null'),
        ({"id": None}, 'key column "id" .* is null'),
        ({"id": 1, "name": "\ud800"}, 'column "name" is STRING'),
        ({"id": 1, "at": "yesterday"}, 'column "at" is TIMESTAMP'),
        ("text", "not a mapping"),
        ({"id": 1.5}, "fraction"),
        ({"id": 1, "at": 1.5}, "fraction"),
        ({"id": 1, "nested": {"x": [{"n": 2.5}]}}, "fraction"),
        ({"id": 1, "nested": {"x": [{"m": 2}]}}, r'no field "nested\.x\.m"'),
    ],
)
def test_a_row_that_does_not_fit_is_named_and_the_others_are_kept(
    log: Log, name: str, row: dict[str, object], message: str
) -> None:
    log.create_topic(
        name,
        "id BIGINT, name STRING, amount DOUBLE, at TIMESTAMP, nested STRUCT<x: ARRAY<STRUCT<n: INT>>>",
        key="id",
    )
    with log.producer(name) as producer:
        producer.send({"id": 1, "nested": {"x": [{"n": 2.0}, None]}})
        producer.send(row)
        producer.send({"id": 2})
        with pytest.raises(RowError, match=message):
            producer.flush()
        producer.send({"id": 3})
    assert [r["id"] for r in rows_of(log, name)] == [1, 2, 3]


def test_an_unknown_column_is_answered_with_the_nearest_name(log: Log, name: str) -> None:
    log.create_topic(name, "id BIGINT, amount DOUBLE")
    with log.producer(name) as producer, pytest.raises(RowError) as caught:
        producer.send_batch([{"id": 1, "amout": 2.0}])
    assert caught.value.hint == 'did you mean "amount"?'


@pytest.mark.parametrize(
    "data",
    [
        [{"id": 1}, {"id": 2, "amout": 1.0}],
        [{"id": 1}, {"id": None}],
        pa.table({"id": [1, None]}),
        pa.table({"id": ["1", "2"]}),
        pa.table({"id": [1.5, 2.5]}),
        pa.table({"id": [1], "amout": [1]}),
        pa.table({"amout": pa.array([], pa.int64())}),
        pa.table({"id": [1], "amount": [2**53 + 1]}),
        pd.Series([1], name="id"),
        pa.table({"id": [1], "name": pa.array([b"\xff\xfe"]).view(pa.string())}),
        pa.table({"name": ["no key"]}),
        pd.DataFrame({"id": ["x"]}),
        17,
        "text",
    ],
)
def test_a_bad_batch_is_refused_whole(log: Log, name: str, data: object) -> None:
    log.create_topic(name, "id BIGINT, name STRING, amount DOUBLE", key="id")
    with log.producer(name) as producer:
        producer.send({"id": 0})
        with pytest.raises(HeadwaterError):
            producer.send_batch(data)
        producer.send_batch([{"id": 3}])
    assert [row["id"] for row in rows_of(log, name)] == [0, 3]


def test_a_column_that_may_not_be_null_is_enforced(log: Log, name: str) -> None:
    log.create_topic(name, "id BIGINT, name STRING NOT NULL")
    with log.producer(name) as producer, pytest.raises(RowError, match="NOT NULL"):
        producer.send_batch([{"id": 1}])


def test_a_record_over_the_size_limit_is_refused(log: Log, name: str) -> None:
    log.create_topic(name, "id BIGINT, text STRING")
    with log.producer(name) as producer:
        producer.send({"id": 1, "text": "x" * 900_000})
        producer.send({"id": 2, "text": "x" * 2_000_000})
        producer.send({"id": 3, "text": "y"})
        with pytest.raises(RecordTooLarge, match="too large"):
            producer.flush()
    assert [row["id"] for row in rows_of(log, name)] == [1, 3]


def test_sending_again_after_a_lost_acknowledgement_adds_nothing_twice(backend: Backend, name: str) -> None:
    log = backend.log
    log.create_topic(name, "user STRING, n INT", key="user", partitions=3)
    batch = [{"user": f"u{i}", "n": i} for i in range(100)]
    with log.producer(name, id="importer") as producer:
        producer.send_batch(batch[:60], sequence=0)
    with backend.again().producer(name, id="importer") as producer:
        producer.send_batch(batch, sequence=0)
        for i in range(40, 100):
            producer.send(batch[i], sequence=i)
        producer.send({"user": "new", "n": 100}, sequence=100)
    assert sorted(row["n"] for row in rows_of(log, name)) == list(range(101))


def test_a_named_producer_goes_on_numbering_where_it_stopped(backend: Backend, name: str) -> None:
    backend.log.create_topic(name, "n INT", partitions=2)
    for run in range(3):
        with backend.again().producer(name, id="meter") as producer:
            assert producer.sequence == run * 5
            for n in range(5):
                producer.send({"n": n})
    found = [row["_sequence"] for row in rows_of(backend.log, name, meta=True)]
    assert sorted(found) == list(range(15))


def test_a_named_producer_that_starts_again_fences_its_predecessor(backend: Backend, name: str) -> None:
    backend.log.create_topic(name, "n INT")
    old = backend.log.producer(name, id="meter")
    old.send({"n": 1})
    old.flush()
    with backend.again().producer(name, id="meter") as new:
        old.send({"n": 2})
        with pytest.raises(Fenced, match="meter"):
            old.flush()
        new.send({"n": 3})
    with pytest.raises(Fenced):
        old.close()
    assert [row["n"] for row in rows_of(backend.log, name)] == [1, 3]


def test_producers_of_different_ids_do_not_fence_each_other(log: Log, name: str) -> None:
    log.create_topic(name, "n INT")
    with log.producer(name, id="a") as a, log.producer(name, id="b") as b, log.producer(name) as c:
        for producer in (a, b, c, a, b, c):
            producer.send({"n": 1})
            producer.flush()
    assert len(rows_of(log, name)) == 6
    assert log.verify(name).ok


def test_a_full_buffer_drops_and_counts(log: Log, name: str) -> None:
    log.create_topic(name, "n INT")
    producer = log.producer(name, linger="5 seconds", buffer=10, on_full="drop")
    for n in range(25):
        producer.send({"n": n})
    assert producer.dropped == 15
    producer.close()
    assert [row["n"] for row in rows_of(log, name)] == list(range(10))


def test_a_full_buffer_is_an_error_when_asked_for(log: Log, name: str) -> None:
    log.create_topic(name, "n INT")
    with log.producer(name, linger="5 seconds", buffer=10, on_full="error") as producer:
        for n in range(10):
            producer.send({"n": n})
        with pytest.raises(BufferFull):
            producer.send({"n": 10})
    assert len(rows_of(log, name)) == 10


def test_a_full_buffer_blocks_and_loses_nothing(log: Log, name: str) -> None:
    log.create_topic(name, "n INT")
    with log.producer(name, buffer=100) as producer:
        for n in range(5000):
            producer.send({"n": n})
    assert [row["n"] for row in rows_of(log, name)] == list(range(5000))


def test_wrong_options_are_refused(log: Log, name: str) -> None:
    log.create_topic(name, "n INT")
    with pytest.raises(UsageError, match="on_full"):
        log.producer(name, on_full="explode")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="interval"):
        log.producer(name, linger="soon")
    producer = log.producer(name)
    producer.close()
    producer.close()
    with pytest.raises(UsageError, match="closed"):
        producer.send({"n": 1})


def test_rows_become_visible_within_the_linger_time_without_a_flush(log: Log, name: str) -> None:
    log.create_topic(name, "n INT")
    with log.producer(name, linger="10 milliseconds") as producer:
        producer.send({"n": 1})
        follower = log.read(name, follow=True)
        assert next(follower).to_pylist() == [{"n": 1}]
        producer.send({"n": 2})
        assert next(follower).to_pylist() == [{"n": 2}]


def test_a_large_batch_is_split_and_comes_back_in_order(log: Log, name: str) -> None:
    log.create_topic(name, "n BIGINT")
    with log.producer(name) as producer:
        producer.send_batch(pa.table({"n": np.arange(200_000)}))
    read = pa.Table.from_batches(log.read(name))
    assert read.column("n").to_pylist() == list(range(200_000))


def test_text_that_is_not_json_is_no_variant(log: Log, name: str) -> None:
    log.create_topic(name, "id BIGINT, doc VARIANT")
    with log.producer(name) as producer:
        producer.send_batch(pa.table({"id": [1, 2], "doc": ['{"a": 1}', None]}))
        with pytest.raises(RowError, match="not JSON") as caught:
            producer.send_batch(pa.table({"id": [3, 4], "doc": ["1", "oops"]}))
    assert caught.value.row == 1
    assert [row["id"] for row in rows_of(log, name)] == [1, 2]


def test_one_free_column_of_another_name_takes_rows(log: Log, name: str) -> None:
    log.create_topic(name, "payload VARIANT")
    with log.producer(name) as producer:
        producer.send({"payload": {"a": 1}})
    assert rows_of(log, name) == [{"payload": '{"a":1}'}]


def test_tables_that_are_appended_again_after_partitions_were_added_are_left_out(log: Log, name: str) -> None:
    log.create_topic(name, "id BIGINT", key="id", partitions=2)
    table = pa.table({"id": range(20)})
    with log.producer(name, id="server") as producer:
        producer.append_changes([table])
        with pytest.raises(UsageError, match="cannot be placed in 3 partitions"):
            producer.append_changes([table], partitions=3)
    log.alter_topic(name, partitions=5)
    with log.producer(name, id="server") as producer:
        producer.append_changes([table], sequence=0, partitions=2)
        producer.append_changes([table])
    ids = [row["id"] for batch in log.read(name) for row in batch.to_pylist()]
    assert sorted(ids) == sorted([*range(20), *range(20)])


def test_several_tables_are_appended_in_one_write_with_a_position_after_each(log: Log, name: str) -> None:
    log.create_topic(name, "id BIGINT", key="id", partitions=3)
    tables = [pa.table({"id": range(start, start + 5)}) for start in range(0, 20, 5)]
    with log.producer(name, id="server") as producer:
        positions = producer.append_changes(tables)
        assert producer.append_changes(tables, sequence=0)[-1].passed(positions[-1])  # stored already
        assert producer.append_changes([pa.table({"id": pa.array([], pa.int64())})])[0].offsets == {}
    for number, position in enumerate(positions):
        before = {
            row["id"]
            for partition, end in position.offsets.items()
            for batch in log.read(name, partition, 0, end)
            for row in batch.to_pylist()
        }
        assert set(range(number * 5, number * 5 + 5)) <= before
    assert sorted(row["id"] for batch in log.read(name) for row in batch.to_pylist()) == list(range(20))
