"""Following a server as a client of no library does: events read off a socket, each with its id."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import uvicorn

import headwater
from headwater.serve.app import create_app
from headwater.serve.http.served import Served
from headwater.serve.push.live_push import LivePush
from headwater.serve.settings import ServeSettings
from headwater.sinks import Batch, Sink
from headwater.views import ViewStore

T = TypeVar("T")


def run_async(scenario: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a thread of its own: a browser of other tests may have a loop in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, scenario).result()


@dataclass(frozen=True)
class Event:
    """An event as it was received."""

    name: str
    data: Any
    id: str | None


class EventReader:
    """Reads the events of one connection; ``last`` is the id to go on from."""

    def __init__(
        self,
        port: int,
        path: str,
        last: str | None = None,
        timeout: float = 10.0,
        *,
        tls: ssl.SSLContext | None = None,
    ):
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last} if last else {})
        self._connection = (
            http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
            if tls is None
            else http.client.HTTPSConnection("127.0.0.1", port, timeout=timeout, context=tls)
        )
        self._connection.request("GET", path, headers=headers)
        self.response = self._connection.getresponse()
        self.last, self.heartbeats = last, 0

    def __iter__(self) -> Iterator[Event]:
        fields: dict[str, str] = {}
        while line := self.response.readline():
            text = line.decode().rstrip("\n")
            if text:
                name, _, value = text.partition(":")
                fields[name] = value.removeprefix(" ")
                continue
            self.last = fields.get("id", self.last)
            self.heartbeats += fields.get("") == "heartbeat"
            if "data" in fields:
                yield Event(fields["event"], json.loads(fields["data"]), fields.get("id"))
            fields = {}

    def take(self, count: int) -> list[Event]:
        events = iter(self)
        return [next(events) for _ in range(count)]

    def until(self, name: str) -> list[Event]:
        seen = []
        for event in self:
            seen.append(event)
            if event.name == name:
                break
        return seen

    def close(self) -> None:
        self.response.close()
        self._connection.close()

    def __enter__(self) -> EventReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Shop:
    """A log with a topic, a store with a view, and a server of both in this process."""

    def __init__(self, home: Path, feed: int = 100_000):
        self.home = home
        self.log = headwater.open(f"file:{home}/log")
        self.log.create_topic("orders", "id BIGINT, city STRING", key="city", partitions=3)
        self.store = ViewStore(home / "views.db", durability="os")
        self.feed, self.version, self.batch = feed, 1, 0
        self.sink = self._sink(1)
        self.log_of_server = headwater.open(f"file:{home}/log")
        self.views_of_server = headwater.open_views(home / "views.db")

    def _sink(self, version: int) -> Sink:
        schema = "city STRING, day BIGINT, n BIGINT"
        sink = self.store.sink("totals", schema, ("city", "day"), version=version, feed=self.feed)
        sink.begin()
        return sink

    def commit(self, *rows: tuple[str, int, int | None]) -> None:
        table = {
            "city": [city for city, _, _ in rows],
            "day": [day for _, day, _ in rows],
            "n": pa.array([n for _, _, n in rows], pa.int64()),
            "_deleted": [n is None for _, _, n in rows],
        }
        self.sink.commit(Batch(self.batch, pa.table(table)))
        self.batch += 1

    def rebuild(self, *rows: tuple[str, int, int]) -> None:
        self.version, self.batch = self.version + 1, 0
        self.sink = self._sink(self.version)
        self.commit(*rows)
        self.store.publish("totals", self.version)
        self.store.drop("totals", self.version - 1)

    def append(self, *rows: tuple[int, str]) -> None:
        with self.log.producer("orders") as producer:
            producer.send_batch([{"id": id, "city": city} for id, city in rows])

    def served(self) -> Served:
        return Served(self.log_of_server, {}, {"shop": self.views_of_server}, ServeSettings(port=0))

    def close(self) -> None:
        self.store.close()
        self.log.close()


class RunningServer:
    """A server in a thread of this process."""

    def __init__(self, served: Served, push: LivePush | None = None):
        app = create_app(served)
        app.state.push = push or app.state.push
        self._push = app.state.push
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=2)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],))
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)

    def close(self) -> None:
        self._push.close()
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()


@contextmanager
def running(served: Served, push: LivePush | None = None) -> Iterator[RunningServer]:
    server = RunningServer(served, push)
    try:
        yield server
    finally:
        server.close()
