"""Records as Kafka messages: what the partitions have already is left out, and nothing is sent in part."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest

from headwater import topic as topics
from headwater.errors import RecordTooLarge
from headwater.log.kafka import outgoing
from headwater.log.kafka.outgoing import MARK, PRODUCER, SENT, SEQUENCE
from headwater.log.record_batch import OutgoingBatch
from headwater.topic import Topic

PLAIN = topics.create("orders", "id BIGINT, note STRING", partitions=2)
TABLE = topics.create("people", "id BIGINT, note STRING", key="id", cleanup="compact")


def records(
    topic: Topic, ids: list[int], sequence: list[int] | None = None, **extras: pa.Array
) -> OutgoingBatch:
    batch = pa.record_batch(
        {"id": pa.array(ids, pa.int64()), "note": pa.array([f"n{each}" for each in ids])},
        schema=topic.schema,
    )
    numbers = np.array(range(len(ids)) if sequence is None else sequence, np.int64)
    return OutgoingBatch(batch, numbers, topic, 5, extras)


def headers(message: outgoing.OutgoingMessage) -> dict[str, Any]:
    return dict(message.headers)


def test_a_record_is_its_key_its_row_as_json_and_who_sent_it() -> None:
    [made] = outgoing.messages(records(TABLE, [7]), TABLE, "till")
    assert (made.partition, made.key) == (0, b"7")
    assert orjson.loads(made.value or b"") == {"id": 7, "note": "n7"}
    assert headers(made) == {PRODUCER: b"till", SEQUENCE: b"0", SENT: b"5"}


def test_a_deletion_has_a_key_and_no_value() -> None:
    deleted = pa.array([False, True])
    kept, gone = outgoing.messages(records(TABLE, [7, 8], _deleted=deleted), TABLE, "till")
    assert kept.value is not None
    assert (gone.key, gone.value) == (b"8", None)


def test_what_a_partition_has_already_is_left_out_and_so_is_a_number_that_does_not_grow() -> None:
    left = outgoing.unsent(records(PLAIN, [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 2, 5]), {0: 0})
    assert left.sequence.tolist() == [1, 2, 3, 5]
    assert outgoing.newest(left) == {0: 2, 1: 5}


def test_one_record_too_large_refuses_all_before_any_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outgoing, "MESSAGE_BYTES", 1100)
    large = records(PLAIN, [1, 10**18])
    outgoing.messages(large, PLAIN, "till")
    monkeypatch.setattr(outgoing, "MESSAGE_BYTES", 1060)
    with pytest.raises(RecordTooLarge, match='too large for topic "orders"') as told:
        outgoing.messages(large, PLAIN, "till")
    assert "row 1 has" in str(told.value)


def test_a_users_header_that_begins_as_ours_is_told_apart() -> None:
    kind = pa.map_(pa.string(), pa.binary())
    given = pa.array([[("hw.mark", b"1"), ("trace", b"2")]], kind)
    [made] = outgoing.messages(records(PLAIN, [1], _headers=given), PLAIN, "till")
    assert MARK not in headers(made)
    assert (headers(made)["hw.user.hw.mark"], headers(made)["trace"]) == (b"1", b"2")


def test_a_mark_is_made_for_every_partition_and_is_no_record() -> None:
    made = outgoing.marks("till", 9, 2)
    assert [each.partition for each in made] == [0, 1]
    assert {each.value for each in made} == {None}
    assert headers(made[0])[MARK] == b"9"
