"""The body of a webhook: a row as JSON, what it does to its key, and when.

Invariant: the row is written as the log writes it, so that no value loses anything.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa

from headwater.sinks.delivery.delivery import Kind
from headwater.topic import Topic
from headwater.values import jsonl
from headwater.values.fitting import Fitted, TargetSchema


class WebhookBody:
    """Makes ``{"type":"insert","timestamp":…,"data":{…}}`` of a row; a deletion has the key alone."""

    def __init__(self, shape: TargetSchema):
        self._shape = shape

    def payloads(self, fitted: Fitted) -> list[bytes | None]:
        """Return each row as JSON."""
        if not len(fitted):
            return []
        texts: list[bytes | None] = [
            *jsonl.encode(fitted.rows, Topic(self._shape.what, (self._shape.schema,)))
        ]
        if self._shape.key and fitted.deleted.any():
            key = pa.schema([self._shape.schema.field(name) for name in self._shape.key])
            keys = jsonl.encode(fitted.rows.select(list(self._shape.key)), Topic(self._shape.what, (key,)))
            gone = fitted.deleted.tolist()
            return [keys[row] if gone[row] else text for row, text in enumerate(texts)]
        return texts

    def body(self, kind: Kind, payload: bytes, made: float) -> bytes:
        """Return the message of a row."""
        at = datetime.fromtimestamp(made, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        return b'{"type":"%s","timestamp":"%s","data":%s}' % (kind.encode(), at.encode(), payload)

    def summary(self, bodies: list[bytes], count: int) -> bytes:
        """Programs can take what comes: nothing is summed up."""
        raise NotImplementedError("webhooks are not summed up")
