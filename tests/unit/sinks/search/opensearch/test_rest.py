"""Requests, and what refusals mean: against a small server that answers as it is told."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from headwater.errors import DiskFull, SinkRefused, SinkUnavailable
from headwater.sinks.search.opensearch.address import parse
from headwater.sinks.search.opensearch.rest import Rest

PASSWORD = "wonderland-7391"


class Server(ThreadingHTTPServer):
    status, body, hang_up = 200, b"{}", 0
    seen: list[tuple[str, str | None, str | None]]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.seen.append((self.path, self.headers["Content-Type"], self.headers["Authorization"]))
        if self.server.hang_up:
            self.server.hang_up -= 1
            self.close_connection = True
            return
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Stay silent."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as started:
        started.seen, started.daemon_threads = [], True
        threading.Thread(target=started.serve_forever, daemon=True).start()
        yield started
        started.shutdown()


@pytest.fixture
def rest(server: Server) -> Iterator[Rest]:
    opened = Rest(parse(f"opensearch://shop:{PASSWORD}@127.0.0.1:{server.server_port}/customers"), "index")
    yield opened
    opened.close()


def test_requests_say_who_sends_them_and_what_they_are(server: Server, rest: Rest) -> None:
    rest.request("POST", "/customers/_bulk?x=y", b"{}\n")
    rest.request("POST", "/customers/_refresh")
    assert [kind for _, kind, _ in server.seen] == ["application/x-ndjson", "application/json"]
    assert all(who and who.startswith("Basic ") for _, _, who in server.seen)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [(401, b"", SinkRefused), (403, b'{"error":{"type":"security_exception"}}', SinkRefused),
     (403, b'{"error":{"type":"cluster_block_exception"}}', DiskFull), (429, b"{}", SinkUnavailable),
     (503, b"<html>", SinkUnavailable), (400, b'{"error":"no"}', SinkRefused), (200, b"<html>", SinkRefused)],
)  # fmt: skip
def test_a_refusal_is_told_as_what_it_means_and_without_a_password(
    server: Server, rest: Rest, status: int, body: bytes, kind: type[Exception]
) -> None:
    server.status, server.body = status, body
    with pytest.raises(kind) as refused:
        rest.request("POST", "/customers")
    assert type(refused.value) is kind
    assert PASSWORD not in f"{refused.value}{refused.value.__cause__}"


def test_a_status_that_is_expected_is_returned(server: Server, rest: Rest) -> None:
    server.status, server.body = 404, b'{"found":false}'
    assert rest.request("POST", "/customers", allowed=(404,)).body == {"found": False}


def test_a_kept_connection_that_was_closed_is_made_anew_once(server: Server, rest: Rest) -> None:
    rest.request("POST", "/one")
    server.hang_up = 1
    assert rest.request("POST", "/two").status == 200
    server.hang_up = 2
    with pytest.raises(SinkUnavailable, match="cannot be reached"):
        rest.request("POST", "/three")


def test_a_server_that_is_away_is_unavailable() -> None:
    with pytest.raises(SinkUnavailable, match="cannot be reached"):
        Rest(parse("opensearch://127.0.0.1:1/customers"), "index").request("GET", "/")


def test_a_server_that_does_not_speak_tls_is_unavailable(server: Server) -> None:
    url = f"opensearch+https://127.0.0.1:{server.server_port}/customers"
    with pytest.raises(SinkUnavailable, match="cannot be reached"):
        Rest(parse(url), "index").request("GET", "/")
