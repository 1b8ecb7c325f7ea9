"""From checked records to Kafka messages: key, JSON value, headers.

The record's key is ``keys.key_bytes``, its value the row as JSON, null for a tombstone. What a
record carries beside its columns travels in headers; Kafka's own timestamp is the time of receipt.

Invariant: everything that could refuse a record is found before the first one is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import RecordTooLarge
from headwater.log.kafka.config import MESSAGE_BYTES
from headwater.log.record_batch import OutgoingBatch
from headwater.record import DELETED
from headwater.schema import evolve
from headwater.topic import Topic
from headwater.values import jsonl, keys

PRODUCER, SEQUENCE, SENT, OCCURRED = "hw.producer", "hw.sequence", "hw.sent", "hw.occurred"
MARK = "hw.mark"
"""On a message without a value that is no record, but a producer's promise to send nothing older."""
OURS = frozenset((PRODUCER, SEQUENCE, SENT, OCCURRED, MARK))
USER = "hw.user."
"""Put before a user's header that begins as ours do."""
_OVERHEAD = 1024

Headers = list[tuple[str, str | bytes | None]]
Encode = Callable[[pa.RecordBatch, Topic], list[bytes]]
"""From rows to the values of messages."""


class OutgoingMessage(NamedTuple):
    """One record as Kafka's client takes it."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: Headers


def unsent(records: OutgoingBatch, last: Mapping[int, int]) -> OutgoingBatch:
    """Leave out what the partitions have already from this producer."""
    before = np.full(int(records.partition.max(initial=0)) + 1, -1, np.int64)
    for partition in np.unique(records.partition):
        before[partition] = last.get(int(partition), -1)
    new = records.sequence > before[records.partition]
    new &= _rising(records.sequence, records.partition)
    if new.all():
        return records
    return records.filter(new)


def newest(records: OutgoingBatch, first: int = 0, end: int | None = None) -> dict[int, int]:
    """Return the last sequence number of each partition, of all records or from one index to another."""
    partitions, sequences = records.partition[first:end], records.sequence[first:end]
    return {
        int(partition): int(sequences[partitions == partition].max()) for partition in np.unique(partitions)
    }


def messages(
    records: OutgoingBatch, topic: Topic, producer: str, encode: Encode = jsonl.encode
) -> list[OutgoingMessage]:
    """Return the records as messages, their values encoded as JSON or otherwise, or refuse them."""
    batch = evolve(records.batch, topic.schema)
    columns = (
        records.partition.tolist(),
        _keys(batch, topic),
        _values(batch, records.extras.get(DELETED), topic, encode),
        _headers(records, producer),
    )
    made = [OutgoingMessage(*each) for each in zip(*columns, strict=True)]
    _check_sizes(made, topic)
    return made


def marks(producer: str, before: int, partitions: int) -> list[OutgoingMessage]:
    """Return a producer's mark for each partition; its key lets compaction keep the newest."""
    headers: Headers = [(PRODUCER, producer.encode()), (MARK, b"%d" % before)]
    key = b"hw.mark." + producer.encode()
    return [OutgoingMessage(number, key, None, headers) for number in range(partitions)]


def _rising(sequence: npt.NDArray[np.int64], partition: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Tell which records have a higher number than all before them in their partition."""
    if (np.diff(sequence) > 0).all():
        return np.ones(len(sequence), np.bool_)
    rising = np.zeros(len(sequence), np.bool_)
    for number in np.unique(partition):
        rows = np.flatnonzero(partition == number)
        highest = np.maximum.accumulate(sequence[rows])
        rising[rows] = np.diff(highest, prepend=highest[0] - 1) > 0
    return rising


def _keys(batch: pa.RecordBatch, topic: Topic) -> Sequence[bytes | None]:
    if not topic.key:
        return [None] * len(batch)
    return list(keys.key_bytes([batch.column(name) for name in topic.key]).to_pylist())


def _values(
    batch: pa.RecordBatch, deleted: pa.Array | None, topic: Topic, encode: Encode
) -> Sequence[bytes | None]:
    if deleted is None:
        return encode(batch, topic)
    present = iter(encode(batch.filter(pc.invert(deleted)), topic))
    return [None if gone else next(present) for gone in deleted.to_pylist()]


def _headers(records: OutgoingBatch, producer: str) -> Iterator[Headers]:
    numbers = map(b"%d".__mod__, records.sequence.tolist())
    who, sent = (PRODUCER, producer.encode()), (SENT, b"%d" % records.sent)
    if not records.extras.keys() & {"_sent", "_occurred", "_headers"}:
        return ([who, (SEQUENCE, number), sent] for number in numbers)
    return (
        [who, (SEQUENCE, number), *_marks(row, sent)]
        for number, row in zip(numbers, _extra_rows(records), strict=True)
    )


def _extra_rows(records: OutgoingBatch) -> Iterator[tuple[Any, Any, Any]]:
    none = [None] * len(records.batch)
    times = (records.extras.get("_sent"), records.extras.get("_occurred"))
    columns = [none if column is None else column.cast(pa.int64()).to_pylist() for column in times]
    user = records.extras.get("_headers")
    return zip(*columns, none if user is None else user.to_pylist(), strict=True)


def _marks(row: tuple[Any, Any, Any], default: tuple[str, bytes]) -> Headers:
    sent, occurred, user = row
    marks: Headers = [default if sent is None else (SENT, b"%d" % sent)]
    if occurred is not None:
        marks.append((OCCURRED, b"%d" % occurred))
    marks += [(USER + name if name.startswith("hw.") else name, value) for name, value in user or ()]
    return marks


def _check_sizes(made: Sequence[OutgoingMessage], topic: Topic) -> None:
    for index, message in enumerate(made):
        size = len(message.value or b"") + len(message.key or b"") + _OVERHEAD
        if len(message.headers) > 3:
            size += sum(len(name) + len(value or b"") for name, value in message.headers)
        if size > MESSAGE_BYTES:
            raise RecordTooLarge(
                f'record is too large for topic "{topic.name}"',
                detail=f"row {index} has {size:,} bytes as a message, the limit is {MESSAGE_BYTES:,}",
                hint="store the large part elsewhere and send a reference to it",
            )
