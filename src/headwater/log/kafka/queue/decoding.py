"""Kafka's messages as a queue delivers them.

Invariant: a producer's mark is no message; one that does not fit its topic is told, with its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from headwater.log.kafka import incoming
from headwater.log.kafka.catalog import KafkaTopic


class DecodedMessage(NamedTuple):
    """A message with its row, and the record as it is read with metadata."""

    message: Any
    value: dict[str, Any]
    headers: Sequence[tuple[str, bytes]]
    record: pa.RecordBatch


def decoded(
    messages: Sequence[Any], known: Mapping[str, KafkaTopic]
) -> tuple[list[DecodedMessage], list[Any], list[Any]]:
    """Return the messages that are records, those that do not fit, and those that are marks."""
    real = incoming.records(messages)
    there = {id(each) for each in real}
    marks = [each for each in messages if id(each) not in there]
    found, unfit = list[DecodedMessage](), list[Any]()
    for name in {each.topic() for each in real}:
        ours = [each for each in real if each.topic() == name]
        batch, bad = incoming.decode_fitting(ours, known[name])
        wrong = set(bad)
        unfit += [ours[index] for index in bad]
        fitting = [each for index, each in enumerate(ours) if index not in wrong]
        found += _rows(fitting, batch, known[name].topic.read_schema.names)
    return found, unfit, marks


def _rows(messages: Sequence[Any], batch: pa.RecordBatch, columns: Sequence[str]) -> Iterable[DecodedMessage]:
    values = batch.select([name for name in columns if name in batch.schema.names]).to_pylist()
    headers = batch.column("_headers").to_pylist()
    for index, (message, value, own) in enumerate(zip(messages, values, headers, strict=True)):
        yield DecodedMessage(message, value, own or (), batch.slice(index, 1))
