"""The figures of a running pipeline for Prometheus, over HTTP on this machine alone.

Counts are those of the run, so they begin at zero when it does, as Prometheus expects of counters.
Invariant: an answer is made of what was published last; a scrape costs the pipeline nothing.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Generic, Literal, TypeVar

from headwater.closing import Closing
from headwater.engine.figures.status import Status
from headwater.errors import HeadwaterError

HOST = "127.0.0.1"
PATH = "/metrics"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
S = TypeVar("S")


@dataclass(frozen=True)
class Metric(Generic[S]):
    """One figure of everything that has a status of a kind."""

    name: str
    type: Literal["counter", "gauge"]
    help: str
    value: Callable[[S], float | None]
    """None where there is no such figure."""


METRICS: tuple[Metric[Status], ...] = (
    Metric("headwater_node_up", "gauge", "1 while the node runs, 0 while it starts, waits or is broken.",
           lambda status: status.state == "running"),
    Metric("headwater_rows_total", "counter", "Rows that the node has taken in.",
           lambda status: status.rows),
    Metric("headwater_late_total", "counter", "Rows that came too late.",
           lambda status: status.late),
    Metric("headwater_late_alert", "gauge", "1 while more of the node's rows have come too late than may.",
           lambda status: status.alert is not None),
    Metric("headwater_ahead_producers", "gauge", "Producers too far ahead of time to move the node's clock.",
           lambda status: len(status.ahead)),
    Metric("headwater_dead_records", "gauge", "Records set aside because the node's code fails on them.",
           lambda status: status.dead),
    Metric("headwater_deliveries_waiting", "gauge", "Deliveries of the node that are still to be sent.",
           lambda status: None if status.deliveries is None else status.deliveries.waiting),
    Metric("headwater_deliveries_set_aside", "gauge", "Deliveries not tried until redriven: an alert.",
           lambda status: None if status.deliveries is None else status.deliveries.set_aside),
    Metric("headwater_deliveries_total", "counter", "Deliveries that have arrived, in all runs.",
           lambda status: None if status.deliveries is None else status.deliveries.delivered),
    Metric("headwater_duplicates_total", "counter", "Rows that were left out because they had come before.",
           lambda status: status.duplicates),
    Metric("headwater_batches_total", "counter", "Micro-batches that were done.",
           lambda status: status.batches),
    Metric("headwater_lag_records", "gauge", "Records of the node's inputs that it has not processed.",
           lambda status: status.lag),
    Metric("headwater_batch_seconds", "gauge", "How long the last micro-batch took.",
           lambda status: status.seconds if status.batches else None),
    Metric("headwater_clock_seconds", "gauge", "The node's clock, in seconds since 1970.",
           lambda status: None if status.clock is None else status.clock / 1e6),
    Metric("headwater_state_bytes", "gauge", "Size of what the node remembers.",
           lambda status: status.state_bytes),
    Metric("headwater_memory_bytes", "gauge", "What of the node's state is in the memory of processes.",
           lambda status: status.memory_bytes),
)  # fmt: skip


def text(pipeline: str, statuses: Iterable[Status]) -> str:
    """Return the figures of a pipeline's nodes in Prometheus' text form."""
    return metric_text(METRICS, {labels(pipeline=pipeline, node=each.node): each for each in statuses})


def metric_text(metrics: Iterable[Metric[S]], statuses: Mapping[str, S]) -> str:
    """Return metrics in Prometheus' text form, of statuses by their labels."""
    return "".join(line + "\n" for metric in metrics for line in _lines(metric, statuses))


def labels(**names: str) -> str:
    """Return labels in Prometheus' text form.

    >>> labels(pipeline="shop", node='a"b')
    'pipeline="shop",node="a\\\\"b"'
    """
    return ",".join(f'{label}="{name.translate(_ESCAPES)}"' for label, name in names.items())


def _lines(metric: Metric[S], statuses: Mapping[str, S]) -> Iterator[str]:
    yield f"# HELP {metric.name} {metric.help}"
    yield f"# TYPE {metric.name} {metric.type}"
    for labelled, status in statuses.items():
        value = metric.value(status)
        if value is not None:
            yield f"{metric.name}{{{labelled}}} {_number(value)}"


def _number(value: float) -> str:
    return repr(value) if isinstance(value, float) else str(int(value))


class Endpoint(Closing):
    """Answers ``/metrics`` on a port of the loopback interface, in a thread of its own.

    >>> import urllib.request
    >>> with Endpoint("shop", 0) as endpoint:
    ...     with urllib.request.urlopen(endpoint.url) as answer:
    ...         answer.readline()
    b'# HELP headwater_node_up 1 while the node runs, 0 while it starts, waits or is broken.\\n'
    """

    def __init__(self, pipeline: str, port: int):
        self._pipeline = pipeline
        self._statuses: list[Status] = []
        self._more = ""
        self._server = _listen(port, self._answer)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://{HOST}:{self._server.server_address[1]}{PATH}"

    def publish(self, statuses: list[Status], more: str = "") -> None:
        """Let the next answers be made of these, and of what else is told in the same form."""
        self._statuses, self._more = statuses, more

    def close(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self) -> bytes:
        return (text(self._pipeline, self._statuses) + self._more).encode()


class _Server(ThreadingHTTPServer):
    """Does not print it when a client goes away in the middle of an answer."""

    def handle_error(self, request: object, client_address: object) -> None:
        """Keep quiet."""


def _listen(port: int, answer: Callable[[], bytes]) -> _Server:
    class AnsweringHandler(_Handler):
        render = staticmethod(answer)

    try:
        return _Server((HOST, port), AnsweringHandler)
    except OSError as error:
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        in_use = error.errno == errno.EADDRINUSE
        raise HeadwaterError(
            f"port {port} for metrics is {'in use' if in_use else 'not allowed'}",
            detail=None if in_use else "ports below 1024 need rights of their own",
            hint="choose another --metrics-port, or 0 for any that is free",
        ) from None


class _Handler(BaseHTTPRequestHandler):
    """Knows one address; says nothing on the terminal."""

    render: Callable[[], bytes]
    server_version, sys_version = "headwater", ""
    timeout = 10.0  # a client that asks for nothing must not hold its thread for ever

    def do_GET(self) -> None:
        """Answer with the figures."""
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        """Answer as GET does, without the figures."""
        self._answer(with_body=False)

    def _answer(self, with_body: bool) -> None:
        found = self.path.split("?", 1)[0] == PATH
        body = self.render() if found else f"metrics are at {PATH}\n".encode()
        self.send_response(HTTPStatus.OK if found else HTTPStatus.NOT_FOUND)
        self.send_header("Content-Type", CONTENT_TYPE if found else "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet: a scrape is no news."""
