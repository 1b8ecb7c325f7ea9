"""What the contract tests share."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import headwater
from headwater import Log

EVERY_TYPE = (
    "flag BOOLEAN, tiny TINYINT, small SMALLINT, n INT, id BIGINT NOT NULL, f FLOAT, d DOUBLE, "
    "price DECIMAL(12,2), name STRING, raw BINARY, day DATE, at TIMESTAMP, local TIMESTAMP_NTZ, "
    "tags ARRAY<STRING>, counts MAP<STRING, BIGINT>, place STRUCT<city: STRING, at: STRUCT<x: INT, y: INT>>, "
    "anything VARIANT"
)


@dataclass
class Backend:
    """One kind of log, and ways to open it again as another process would."""

    kind: str
    log: Log
    url: str
    opened: list[Log] = field(default_factory=list)

    def again(self, **options: Any) -> Log:
        self.opened.append(headwater.open(self.url, **options))
        return self.opened[-1]


def rows_of(log: Log, topic: str, **how: Any) -> list[dict[str, Any]]:
    return [row for batch in log.read(topic, **how) for row in batch.to_pylist()]


def drain(consumer: headwater.Consumer, count: int, timeout: float = 30) -> list[dict[str, Any]]:
    """Poll until ``count`` rows have come."""
    rows: list[dict[str, Any]] = []
    deadline = time.monotonic() + timeout
    while len(rows) < count and time.monotonic() < deadline:
        batch = consumer.poll(0.5)
        if batch is not None:
            rows += batch.to_pylist()
    return rows
