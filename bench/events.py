"""The events of the log's benchmarks, in the shapes that each side takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
import pyarrow as pa

SCHEMA = "user STRING, url STRING, amount DOUBLE, at TIMESTAMP"
KEY = "user"
FIRST = 1_700_000_000_000_000


def rows(count: int) -> list[dict[str, Any]]:
    chance = np.random.default_rng(7)
    users = chance.integers(0, 10_000, count).tolist()
    urls = chance.integers(0, 1_000, count).tolist()
    amounts = chance.integers(0, 100_000, count).tolist()
    return [
        {"user": f"user-{u}", "url": f"/product/{p}", "amount": a / 100, "at": FIRST + i * 1000}
        for i, (u, p, a) in enumerate(zip(users, urls, amounts, strict=True))
    ]


def table(events: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist(events, schema=schema)


def messages(events: list[dict[str, Any]]) -> list[tuple[bytes, bytes]]:
    return [(row["user"].encode(), orjson.dumps(row)) for row in events]
