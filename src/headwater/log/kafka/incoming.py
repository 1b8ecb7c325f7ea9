"""From Kafka messages to Arrow batches, all of a partition's messages at once.

Invariant: a message that does not fit its topic is an error that names its place; it is never
left out in silence, and the messages before it are delivered first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_NOT_AVAILABLE, Message

from headwater import record
from headwater import topic as topics
from headwater.errors import HeadwaterError, RowError
from headwater.log import computed_columns
from headwater.log.kafka.catalog import KafkaTopic
from headwater.log.kafka.outgoing import MARK, OCCURRED, OURS, PRODUCER, SENT, SEQUENCE, USER
from headwater.schema import TIMESTAMP
from headwater.topic import Topic
from headwater.values import jsonl, jsonl_columns, keys
from headwater.values.columns import Misfit

_FREE = topics.create("free", "JSON")


class Decoded(NamedTuple):
    """The rows of the messages up to the first that does not fit, and its error."""

    batch: pa.RecordBatch
    error: RowError | None


def records(messages: Sequence[Any]) -> list[Any]:
    """Return the messages that are records: all but the marks."""
    return [each for each in messages if each.value() is not None or mark(each) is None]


def mark(message: Any) -> int | None:
    """Return the time that a mark tells, or None if the message is a record."""
    return next((_number(v) for name, v in message.headers() or () if name == MARK and v), None)


def decode(messages: Sequence[Any], known: KafkaTopic, meta: bool) -> Decoded:
    """Return messages of one partition as rows, with ``_deleted`` or all metadata as asked for."""
    values = list(map(Message.value, messages))
    rows, bad = _decoded(messages, values, known)
    error = None
    if bad:
        index, reason = min(bad, key=lambda each: each[0])
        error = _unreadable(messages[index], known.topic, reason)
        messages, values = messages[:index], values[:index]
        # Rows of later messages may be in there; decode again what comes before the bad one.
        rows, _ = _decoded(messages, values, known)
    return Decoded(_read_batch(messages, values, rows, known.topic, meta), error)


def decode_fitting(messages: Sequence[Any], known: KafkaTopic) -> tuple[pa.RecordBatch, list[int]]:
    """Return the messages that fit as rows with all metadata, and the indexes of those that do not."""
    fitting, unfit = list(range(len(messages))), list[int]()
    while True:
        chosen = [messages[index] for index in fitting] if unfit else messages
        values = list(map(Message.value, chosen))
        rows, bad = _decoded(chosen, values, known)
        if not bad:
            return _read_batch(chosen, values, rows, known.topic, True), sorted(unfit)
        wrong = {fitting[index] for index, _ in bad}
        unfit += wrong
        fitting = [index for index in fitting if index not in wrong]


def _decoded(messages: Sequence[Any], values: Sequence[bytes | None], known: KafkaTopic) -> Rows:
    return (_typed if known.declared else _foreign)(messages, values, known.topic)


def _read_batch(
    messages: Sequence[Any], values: Sequence[bytes | None], rows: pa.RecordBatch, topic: Topic, meta: bool
) -> pa.RecordBatch:
    full = meta or topic.read_otherwise
    schema = record.read_schema(topic.schema, topic.compacted, full)
    columns = rows.columns
    if full:
        columns = columns + _meta(messages, values, rows, topic)
    elif topic.compacted:
        columns = [*columns, _deleted(values)]
    batch = pa.RecordBatch.from_arrays(columns, schema=schema)
    if not topic.read_otherwise:
        return batch
    keys = partial(_keys, messages)
    return computed_columns.selected(computed_columns.complete(batch, topic, keys), topic, meta)


def _keys(messages: Sequence[Any]) -> pa.Array:
    return pa.array([message.key() for message in messages], pa.binary())


Rows = tuple[pa.RecordBatch, list[tuple[int, RowError]]]


def _typed(messages: Sequence[Any], values: Sequence[bytes | None], topic: Topic) -> Rows:
    present = [value for value in values if value is not None]
    batch, bad = jsonl.decode(present, topic)
    if len(present) == len(values):
        return batch, bad
    gone = [index for index, value in enumerate(values) if value is None]
    there = [index for index, value in enumerate(values) if value is not None]
    bad = [(there[index], error) for index, error in bad]
    if bad:
        return batch, bad
    tombstones, bad = _tombstones([messages[index].key() for index in gone], topic)
    if bad:
        return batch, [(gone[index], error) for index, error in bad]
    order = pc.sort_indices(pa.array(there + gone))
    return pa.concat_batches([_nullable(batch, topic), tombstones]).take(order), []


def _foreign(messages: Sequence[Any], values: Sequence[bytes | None], topic: Topic) -> Rows:
    """Return key and free JSON value of a topic that has no declaration."""
    batch, bad = jsonl.decode([b"null" if value is None else value for value in values], _FREE)
    if bad:
        return batch, bad
    texts = pc.if_else(_deleted(values), pa.scalar(None, pa.string()), batch.column(0))
    names = [None if m.key() is None else m.key().decode("utf-8", "backslashreplace") for m in messages]
    return pa.RecordBatch.from_arrays([pa.array(names, pa.string()), texts], schema=topic.schema), []


def _tombstones(found: Sequence[bytes | None], topic: Topic) -> Rows:
    """Return rows that have only the columns of their key."""
    schema = _nullable_schema(topic)
    try:
        return _key_rows(found, topic, schema), []
    except (ValueError, TypeError, pa.ArrowException, Misfit) as error:
        if len(found) == 1:
            what = f'tombstone has no key that fits topic "{topic.name}"'
            return pa.RecordBatch.from_pylist([], schema=schema), [
                (0, RowError(what, detail=str(error) or None))
            ]
    for index, key in enumerate(found):
        _, bad = _tombstones([key], topic)
        if bad:
            return pa.RecordBatch.from_pylist([], schema=schema), [(index, bad[0][1])]
    raise AssertionError("each key fits, but not all together")


def _key_rows(found: Sequence[bytes | None], topic: Topic, schema: pa.Schema) -> pa.RecordBatch:
    if not topic.computed_names.isdisjoint(topic.key):  # it is computed from the record's own
        if any(key is None for key in found):
            raise ValueError("its key is null")
        return pa.RecordBatch.from_arrays(
            [pa.nulls(len(found), field.type) for field in schema], schema=schema
        )
    types = [topic.schema.field(name).type for name in topic.key]
    if topic.key and any(key is None for key in found):
        raise ValueError("its key is null")
    split = [_split(key or b"", types) for key in found]
    columns = {field.name: pa.nulls(len(found), field.type) for field in schema}
    for place, (name, kind) in enumerate(zip(topic.key, types, strict=True)):
        columns[name] = _key_column([parts[place] for parts in split], kind)
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=schema)


def _split(key: bytes, types: Sequence[pa.DataType]) -> list[Any]:
    if not types or (len(types) == 1 and pa.types.is_binary(types[0])):
        return [key]
    parts = keys.split_key(key, types)
    if len(parts) != len(types):
        raise ValueError(f"its key has {len(parts)} parts, not {len(types)}")
    return parts


def _key_column(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_binary(kind):
        return pa.array([v if isinstance(v, bytes) else bytes.fromhex(v) for v in values], kind)
    return jsonl_columns.column(values, kind)


def _nullable_schema(topic: Topic) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in topic.schema])


def _nullable(batch: pa.RecordBatch, topic: Topic) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(batch.columns, schema=_nullable_schema(topic))


def _deleted(values: Sequence[bytes | None]) -> pa.Array:
    if None not in values:
        return pa.repeat(pa.scalar(False), len(values))
    return pa.array([value is None for value in values], pa.bool_())


def _meta(
    messages: Sequence[Any], values: Sequence[bytes | None], rows: pa.RecordBatch, topic: Topic
) -> list[pa.Array]:
    """Return the columns of ``record.META``, in their order."""
    kinds, times = _stamps(messages)
    stamped = pc.multiply(times, 1000).cast(TIMESTAMP)
    nothing = pa.scalar(None, TIMESTAMP)
    own = _headers(list(map(Message.headers, messages)))
    created = pc.if_else(pc.equal(kinds, TIMESTAMP_CREATE_TIME), stamped, nothing)
    occurred = own["_occurred"]
    if topic.stored_event_time is not None:
        occurred = pc.coalesce(occurred, rows.column(topic.stored_event_time).cast(TIMESTAMP))
    columns = {
        **own,
        record.DELETED: _deleted(values),
        "_partition": pa.repeat(pa.scalar(messages[0].partition() if messages else 0, pa.int32()), len(rows)),
        "_offset": pa.array(np.fromiter(map(Message.offset, messages), np.int64, len(messages))),
        "_occurred": occurred,
        "_sent": pc.coalesce(own["_sent"], created),
        "_received": pc.if_else(pc.equal(kinds, TIMESTAMP_NOT_AVAILABLE), nothing, stamped),
    }
    return [columns[name] for name in record.META]


def _stamps(messages: Sequence[Any]) -> tuple[pa.Array, pa.Array]:
    """Return the kinds of timestamps, and the milliseconds of them."""
    both = np.fromiter(chain.from_iterable(map(Message.timestamp, messages)), np.int64, 2 * len(messages))
    return pa.array(both[::2].astype(np.int8)), pa.array(both[1::2].copy())


def _headers(all_headers: Sequence[Any]) -> dict[str, pa.Array]:
    """Return what headers of ours tell, and the users' own; most topics of others have none."""
    kinds = {name: record.META[name] for name in ("_occurred", "_sent", "_producer", "_sequence", "_headers")}
    if not any(all_headers):
        return {name: pa.nulls(len(all_headers), kind) for name, kind in kinds.items()}
    marks = [_marks(headers) for headers in all_headers]
    names = {"_occurred": OCCURRED, "_sent": SENT, "_producer": PRODUCER, "_sequence": SEQUENCE}
    columns = {name: [mark.get(names.get(name, "headers")) for mark in marks] for name in kinds}
    return {name: pa.array(columns[name], kind) for name, kind in kinds.items()}


def _marks(headers: Sequence[tuple[str, bytes | None]] | None) -> dict[str, Any]:
    """Return our own headers by name, and the user's as a list."""
    marks: dict[str, Any] = {}
    for name, value in headers or ():
        if name not in OURS:
            marks.setdefault("headers", []).append((name.removeprefix(USER), value))
        elif value is not None:
            marks[name] = value.decode("utf-8", "replace") if name == PRODUCER else _number(value)
    return marks


def _number(value: bytes) -> int | None:
    return int(value) if value.lstrip(b"-").isdigit() else None


def _unreadable(message: Any, topic: Topic, reason: HeadwaterError) -> RowError:
    place = f"partition {message.partition()}, offset {message.offset()}"
    return RowError(
        f'record of topic "{topic.name}" cannot be read: {place}',
        detail=reason.message + (f"; {reason.detail}" if reason.detail else ""),
        hint=f"correct its producer; to leave the record out, go on at offset {message.offset() + 1}",
    )
