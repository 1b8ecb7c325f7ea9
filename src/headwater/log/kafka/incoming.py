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
from headwater.errors import RowError, UnreadableRecord
from headwater.formats import decoding, wire
from headwater.log import computed_columns
from headwater.log.kafka.catalog import KafkaTopic
from headwater.log.kafka.outgoing import MARK, OCCURRED, OURS, PRODUCER, SENT, SEQUENCE, USER
from headwater.schema import TIMESTAMP
from headwater.topic import Topic
from headwater.values import jsonl, jsonl_columns, keys
from headwater.values.bulk import Rows
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
    error = None
    while True:
        batch, bad = _batch(messages, known, meta)
        if batch is not None and not bad:
            return Decoded(batch, error)
        # Rows of later messages may be in there; decode again what comes before the bad one.
        index, reason = min(bad, key=lambda each: each[0])
        at = (messages[index].partition(), messages[index].offset())
        error = UnreadableRecord(known.topic.name, at, reason, messages[index].value())
        messages = messages[:index]


def decode_fitting(messages: Sequence[Any], known: KafkaTopic) -> tuple[pa.RecordBatch, list[int]]:
    """Return the messages that fit as rows with all metadata, and the indexes of those that do not."""
    fitting, unfit = list(range(len(messages))), list[int]()
    while True:
        chosen = [messages[index] for index in fitting] if unfit else messages
        batch, bad = _batch(chosen, known, True)
        if batch is not None and not bad:
            return batch, sorted(unfit)
        wrong = {fitting[index] for index, _ in bad}
        unfit += wrong
        fitting = [index for index in fitting if index not in wrong]


def _batch(
    messages: Sequence[Any], known: KafkaTopic, meta: bool
) -> tuple[pa.RecordBatch | None, list[tuple[int, RowError]]]:
    """Return the rows of messages, if all fit, or the indexes of some that do not, with their errors."""
    values = list(map(Message.value, messages))
    rows, bad = _decoded(messages, values, known)
    if bad:
        return None, bad
    batch = _read_batch(messages, values, rows, known.topic, meta)
    return batch, computed_columns.uncomputed(batch, known.topic)


def _decoded(messages: Sequence[Any], values: Sequence[bytes | None], known: KafkaTopic) -> Rows:
    if not known.declared:
        return _foreign(messages, values, known.topic)
    return (_typed if known.topic.key_format is None else _keyed)(messages, values, known)


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


def _typed(messages: Sequence[Any], values: Sequence[bytes | None], known: KafkaTopic) -> Rows:
    topic = known.topic
    if decoding.names_schemas(topic.format):
        values = _headed(messages, values, wire.VALUE_HEADER)
    present = [value for value in values if value is not None]
    batch, bad = decoding.decode_values(present, topic, known.writers)
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


def _keyed(messages: Sequence[Any], values: Sequence[bytes | None], known: KafkaTopic) -> Rows:
    """Return rows whose key is read from the record's key."""
    topic, every = known.topic, [message.key() for message in messages]
    if decoding.names_schemas(topic.format):
        values = _headed(messages, values, wire.VALUE_HEADER)
    if decoding.names_schemas(str(topic.key_format)):
        every = _headed(messages, every, wire.KEY_HEADER)
    present = [index for index, value in enumerate(values) if value is not None]
    rows, bad = decoding.decode_values([values[index] or b"" for index in present], topic, known.writers)
    bad = [(present[at], error) for at, error in bad]
    missing = RowError(f'record has no key, and topic "{topic.name}" needs one')
    bad += [(index, missing) for index, key in enumerate(every) if key is None]
    key_rows, misfits = decoding.decode_keys([key for key in every if key is not None], topic, known.writers)
    there = [index for index, key in enumerate(every) if key is not None]
    bad += [(there[at], error) for at, error in misfits]
    if bad:
        return rows, bad
    at = dict(zip(present, range(len(present)), strict=True))
    rows = rows.take(pa.array([at.get(index) for index in range(len(values))], pa.int64()))
    columns = [(key_rows if name in topic.key else rows).column(name) for name in topic.schema.names]
    return pa.RecordBatch.from_arrays(columns, schema=_nullable_schema(topic)), []


def _headed(messages: Sequence[Any], values: Sequence[bytes | None], name: str) -> list[bytes | None]:
    """Return values behind what a header of their records says of their schema, where one does."""
    found = (dict(message.headers() or ()).get(name) for message in messages)
    return [
        value if header is None or value is None else wire.HeadedValue(header + value)
        for header, value in zip(found, values, strict=True)
    ]


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
