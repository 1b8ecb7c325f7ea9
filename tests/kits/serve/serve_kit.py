"""Requests to a real server, by the standard library alone, and a server of a few topics and views."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

import headwater
from headwater import Log, Position, Server, ServeSettings
from headwater.serve.http.served import Served
from headwater.sinks import Batch
from headwater.views import ViewStore, open_views

ORDERS = "id BIGINT, item STRING, price DOUBLE, at TIMESTAMP"
STOCK = "shop STRING, item STRING, count BIGINT, price DECIMAL(10,2), rate DOUBLE, raw BINARY, at TIMESTAMP"
EVENT = {"id": 1, "item": "tea", "price": 1.5, "at": "2026-01-02T03:04:05Z"}


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def call(
    url: str, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
) -> Answer:
    """Send one request on a connection of its own; what is not bytes is sent as JSON."""
    given = dict(headers or {})
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
        given.setdefault("Content-Type", "application/json")
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    try:
        connection.request(method, path, body, given)
        answer = connection.getresponse()
        return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
    finally:
        connection.close()


def stored(log: Log, topic: str = "orders") -> list[dict[str, Any]]:
    return [row for batch in log.read(topic) for row in batch.to_pylist()]


def make_log(root: Path, partitions: int = 3) -> Log:
    log = headwater.open(f"file:{root / 'data'}")
    log.create_topic("orders", ORDERS, key="id", event_time="at", partitions=partitions)
    log.create_topic("prices", "id BIGINT, cents BIGINT", key="id", cleanup="compact")
    return log


def stock_rows(count: int = 10) -> pa.Table:
    numbers = range(count)
    columns = {
        "shop": ["ab"[n % 2] for n in numbers],
        "item": [f"i/{n}" for n in numbers],
        "count": [None if n % 3 == 0 else n % 4 for n in numbers],
        "price": pa.array([f"{n}.50" for n in numbers]).cast(pa.decimal128(10, 2)),
        "rate": [float("nan") if n % 5 == 0 else n / 3 for n in numbers],
        "raw": [bytes([n]) for n in numbers],
        "at": pa.array([1_767_323_045_000_000 + n for n in numbers], pa.timestamp("us", "UTC")),
    }
    return pa.table(columns)


def make_views(root: Path) -> ViewStore:
    """Make a view ``stock`` that has read three orders."""
    home = root / "data" / "pipelines" / "shop"
    home.mkdir(parents=True, exist_ok=True)
    store = ViewStore(home / "views.db")
    sink = store.sink("stock", STOCK, ("shop", "item"))
    sink.begin()
    sink.commit(Batch(0, stock_rows(), positions=(Position("orders", {0: 3}),)))
    return store


@contextmanager
def serving(root: Path, **settings: Any) -> Iterator[Server]:
    """Serve the log and the views below a directory, in this process."""
    log, store = headwater.open(f"file:{root / 'data'}"), root / "data" / "pipelines" / "shop" / "views.db"
    views = {"shop": open_views(store)} if store.exists() else {}
    with Server(Served(log, {}, views), ServeSettings(**{"port": 0, **settings})) as server:
        yield server


_CHILD = """
import sys
import headwater
from headwater.sinks import crash
server = headwater.open_server(log=sys.argv[1], settings=headwater.ServeSettings(port=0))
crash.arm(int(sys.argv[2]))
print(server.url, flush=True)
sys.stdin.read()
server.close()
"""


@contextmanager
def child_server(root: Path, points: int = 1 << 60) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Serve in a process of its own, which dies at a point between two steps, or when it is killed."""
    command = [sys.executable, "-c", _CHILD, f"file:{root / 'data'}", str(points)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()
