"""Deliveries become events, each once: the delivery's id is a header of its event's record.

So the two are stored together or not at all, and who starts again reads from the topic itself which ids are
there. The producer is opened before they are read, which fences a predecessor: nothing is added behind the
reader's back. Invariant: of deliveries of one id, within the time for which ids are remembered, one event is
stored, whatever is killed; a delivery is answered with success only when its event is durable.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pyarrow as pa

from headwater import durations
from headwater import schema as schemas
from headwater.closing import Closing
from headwater.errors import HeadwaterError, RowError
from headwater.ingest.checkpoints import producer_id
from headwater.ingest.webhook.receiver import WebhookDelivery
from headwater.log import Log, Position, Topic
from headwater.record import HEADERS
from headwater.values import jsonl

EVENTS = "received TIMESTAMP, delivery STRING, type STRING, body VARIANT"
HEADER = "delivery"


class StoredDelivery(NamedTuple):
    """What became of a delivery."""

    is_duplicate: bool
    position: Position


class Deliveries(Closing):
    """Appends deliveries to a topic, from any thread."""

    def __init__(self, log: Log, topic: Topic, name: str, remember: timedelta):
        self._topic, self._remember = topic, remember
        self._as_events = set(schemas.read(EVENTS).names) <= set(topic.schema.names)
        self._producer = log.producer(topic.name, id=producer_id(name))  # first: it fences a predecessor
        self._lock = threading.Lock()
        self._stored = _stored_ids(log, topic, self._producer.id, remember)
        self._pending: set[bytes] = set()

    def add(self, delivery: WebhookDelivery) -> StoredDelivery:
        """Append a delivery unless its id is known, and return when its event is durable."""
        id = _digest(delivery.id)
        with self._lock:  # held while a row is checked and handed over, not while it is written
            known = id in self._stored or id in self._pending
            if not known:
                self._producer.send_changes(self._rows(delivery))
                self._pending.add(id)
        position = self._producer.flush()  # if it fails, the event is on its way still: its id stays pending
        with self._lock:
            self._pending.discard(id)
            self._stored.setdefault(id, durations.now())
            self._forget()
        return StoredDelivery(known, position)

    def close(self) -> None:
        """Make everything durable and let go of the topic."""
        self._producer.close()

    def _rows(self, delivery: WebhookDelivery) -> pa.Table:
        headers = pa.array([[(HEADER, delivery.id.encode())]], HEADERS)
        if self._as_events:
            values = {"received": durations.now(), "delivery": delivery.id, "type": delivery.type}
            event = {"body": delivery.body.decode()}
            row = {**values, **event}
            schema = schemas.read(EVENTS)
            columns = {field.name: pa.array([row[field.name]], field.type) for field in schema}
        else:
            batch, bad = jsonl.decode([delivery.body], self._topic)
            for _, error in bad:
                raise error
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        return pa.table({**columns, "_headers": headers})

    def _forget(self) -> None:
        """Forget ids that are older than is asked; the oldest are the first."""
        since = durations.now() - self._remember // durations.MICROSECOND
        while self._stored and next(iter(self._stored.values())) < since:
            self._stored.popitem(last=False)


def is_refusal(error: HeadwaterError) -> bool:
    """Tell whether an error is about the delivery, and not about the log."""
    return isinstance(error, RowError)


def _stored_ids(log: Log, topic: Topic, producer: str, remember: timedelta) -> OrderedDict[bytes, int]:
    """Return the ids that the topic has of a producer, with the times at which they were stored."""
    since = datetime.now(UTC) - remember
    found: list[tuple[int, bytes]] = []
    for batch in log.read(topic.name, start=since, meta=True):
        columns = (batch.column(name).to_pylist() for name in ("_producer", "_headers", "_received"))
        for who, headers, received in zip(*columns, strict=True):  # once, at the start
            id = dict(headers or ()).get(HEADER)
            if who == producer and id is not None:
                found.append((durations.micros(received), _digest(id)))
    return OrderedDict((id, received) for received, id in sorted(found))


def _digest(id: str | bytes) -> bytes:
    return hashlib.blake2b(id.encode() if isinstance(id, str) else id, digest_size=16).digest()
