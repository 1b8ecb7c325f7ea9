"""What the embedded log does for a producer: frames by partition, all of a batch or nothing, and once."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import topic
from headwater.errors import Fenced, LogUnavailable, TopicError
from headwater.log.embedded import EmbeddedLog
from headwater.log.embedded.appender import EmbeddedAppender, FramePart
from headwater.log.record_batch import Builder, OutgoingBatch

TOPIC = topic.create("t", "k STRING, n INT", key="k", partitions=3)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with EmbeddedLog(tmp_path / "log", durability="os") as log:
        log.create_topic("t", "k STRING, n INT", key="k", partitions=3)
        yield log


def outgoing(first: int, keys: str) -> OutgoingBatch:
    rows = [{"k": key, "n": first + at} for at, key in enumerate(keys)]
    batch = pa.RecordBatch.from_pylist(rows, schema=TOPIC.schema)
    return Builder(lambda: TOPIC, first).from_batch(batch, first)


def append(appender: EmbeddedAppender, records: OutgoingBatch) -> dict[int, int]:
    return dict(appender.append(records, [appender.encode(piece) for piece in records.pieces()]))


def stored(log: EmbeddedLog) -> list[int]:
    return sorted(n for batch in log.read("t") for n in batch.column("n").to_pylist())


@given(st.lists(st.integers(0, 40), min_size=1, unique=True).map(sorted), st.integers(-1, 41))
def test_what_comes_after_a_sequence_number_is_what_has_a_higher_one(numbers: list[int], last: int) -> None:
    batch = pa.RecordBatch.from_pylist([{"n": number} for number in numbers])
    part = FramePart(batch, np.array(numbers), 0, None, 0, "lz4").after(last)
    left = [number for number in numbers if number > last]
    assert (part.sequence.tolist() if part else []) == left
    assert (part.batch.column("n").to_pylist() if part else []) == left


def test_each_record_is_in_a_frame_of_its_partition_in_order(log: EmbeddedLog) -> None:
    records = outgoing(0, "abcdefgabcdefg")
    found: dict[int, list[int]] = {}
    for number, (part, draft) in log._appender("t", None).encode(records):
        assert draft.rows == len(part.batch)
        found.setdefault(number, []).extend(part.sequence.tolist())
    assert found == {
        number: np.flatnonzero(records.partition == number).tolist()
        for number in set(records.partition.tolist())
    }


def test_a_batch_that_is_sent_again_is_stored_once_and_one_that_overlaps_in_part(log: EmbeddedLog) -> None:
    appender = log._appender("t", "p")
    reached = append(appender, outgoing(0, "abcdef"))
    assert append(appender, outgoing(0, "abcdef")) == reached
    append(appender, outgoing(4, "efgh"))
    assert stored(log) == list(range(8))
    appender.close()
    assert log._appender("t", "p").last_sequence == 7


def test_a_batch_is_written_to_all_of_its_partitions_or_to_none(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    appender, real, calls = log._appender("t", None), os.pwritev, list[int]()

    def full_at_the_second(file: int, *arguments: Any) -> int:
        calls.append(file)
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, "full")
        return real(file, *arguments)

    monkeypatch.setattr(os, "pwritev", full_at_the_second)
    with pytest.raises(LogUnavailable, match="the disk is full"):
        append(appender, outgoing(0, "abcdef"))
    assert stored(log) == []
    append(appender, outgoing(0, "abcdef"))
    assert stored(log) == list(range(6))
    assert log.verify("t").ok
    appender.close()


def test_a_newer_appender_of_the_same_id_shuts_the_older_one_out(log: EmbeddedLog) -> None:
    older = log._appender("t", "p")
    append(older, outgoing(0, "abc"))
    newer = log._appender("t", "p")
    assert newer.last_sequence == 2
    with pytest.raises(Fenced):
        append(older, outgoing(3, "a"))
    append(newer, outgoing(3, "abc"))
    assert stored(log) == list(range(6))


def test_an_appender_that_cannot_start_leaves_no_file_open(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "no space left")

    log._appender("t", "another").close()  # opens what the log keeps open
    before = os.listdir("/dev/fd")
    with monkeypatch.context() as patch, pytest.raises(LogUnavailable):
        patch.setattr(os, "pwritev", full)
        log._appender("t", "me")
    assert os.listdir("/dev/fd") == before


def test_records_of_a_schema_that_the_topic_has_not_are_refused(log: EmbeddedLog) -> None:
    other = topic.create("t", "k STRING, m INT", key="k", partitions=3)
    batch = pa.RecordBatch.from_pylist([{"k": "a", "m": 1}], schema=other.schema)
    records = OutgoingBatch(batch, np.array([0]), TOPIC, 0)
    with pytest.raises(TopicError, match="no schema of the columns k, m"):
        log._appender("t", None).encode(records)
