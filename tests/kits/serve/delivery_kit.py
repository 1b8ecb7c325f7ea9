"""Receivers of deliveries that answer as a test says, and sinks that send to them without long waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from headwater.backoff import Backoff
from headwater.sinks import Batch
from headwater.sinks.delivery.declaration import DeliveryDeclaration, OutboxPlace
from headwater.sinks.delivery.sink import DeliverySink
from headwater.sinks.delivery.worker import DeliveryPolicy
from headwater.sinks.webhook.declaration import declare_webhook

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
COLUMNS = pa.schema([("k", pa.string()), ("n", pa.int64())])
QUICK = DeliveryPolicy(concurrency=4, retry_timeout=60.0, backoff=Backoff(0.005, 0.02), drain=5.0, poll=0.02)
CUT, SILENT = -1, -2
"""Answers that are none: the connection ends after the request was read, or nothing is said."""


@dataclass(frozen=True)
class Answer:
    """What a receiver says to a request."""

    status: int = 204
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """What a receiver has got."""

    headers: dict[str, str]
    body: bytes
    answered: int
    """The status of the answer."""

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def message(self) -> dict[str, Any]:
        message: dict[str, Any] = orjson.loads(self.body)
        return message


class Receiver:
    """An HTTP server on this machine that keeps what it gets."""

    def __init__(self, server: ThreadingHTTPServer):
        self._server = server
        self.requests: list[Request] = []
        self.answer: Callable[[Request], Answer] = lambda request: Answer()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/hook"

    def arrived(self) -> list[Request]:
        """Return the requests that were taken, repeats among them."""
        return [each for each in list(self.requests) if 200 <= each.answered < 300 or each.answered == CUT]

    def clear(self) -> None:
        self.requests.clear()
        self.answer = lambda request: Answer()


@contextmanager
def receiving() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(length)
            if len(body) < length:  # its sender has died: it is no request
                self.close_connection = True
                return
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = receiver.answer(Request(headers, body, 0))
            receiver.requests.append(Request(headers, body, answer.status))
            if answer.status in (CUT, SILENT):
                time.sleep(0.3 if answer.status == SILENT else 0)
                self.close_connection = True
                self.connection.close()
                return
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def finish(self) -> None:
            with suppress(OSError, ValueError):
                super().finish()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            pass

    with Server(("127.0.0.1", 0), Handler) as server:
        receiver = Receiver(server)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield receiver
        server.shutdown()


def webhook(
    url: str, key: str | tuple[str, ...] = "k", policy: DeliveryPolicy = QUICK
) -> DeliveryDeclaration:
    return replace(declare_webhook(url, SECRET, key), policy=policy)


def sink(
    home: Path, declaration: DeliveryDeclaration, *, version: int = 1, sends: bool = True
) -> DeliverySink:
    return DeliverySink(OutboxPlace(home, "hooks"), COLUMNS, declaration, version=version, sends=sends)


def outbox(home: Path) -> Path:
    return OutboxPlace(home, "hooks").file


def batch(number: int, *rows: tuple[str, int | None]) -> Batch:
    """Return a batch of keys and numbers; a row without a number is a deletion."""
    return Batch(
        number,
        pa.table(
            {
                "k": pa.array([key for key, _ in rows], pa.string()),
                "n": pa.array([value for _, value in rows], pa.int64()),
                "_deleted": pa.array([value is None for _, value in rows], pa.bool_()),
            }
        ),
    )


def until(condition: Callable[[], Any], seconds: float = 20.0) -> None:
    """Wait until something is true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it has not come to that in time"
        time.sleep(0.002)
