"""Requests that are huge, slow or half: refused, nothing written, and the server lives."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater
from headwater import Server
from serve_kit import call, make_log, serving, stored

HEAD = b"POST /v1/topics/orders HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def hasty(root: Path) -> Iterator[Server]:
    make_log(root).close()
    with serving(root, request_seconds=0.4) as server:
        yield server


def talk(server: Server, *parts: bytes, pause: float = 0.0, finish: bool = False) -> bytes:
    """Send parts one after the other; return what comes back until the server closes."""
    host, _, port = server.url.removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        try:
            for part in parts:
                connection.sendall(part)
                time.sleep(pause)
            if finish:
                connection.shutdown(socket.SHUT_WR)
            answer = b""
            while data := connection.recv(65536):
                answer += data
        except ConnectionError:
            return answer if "answer" in locals() else b""
        return answer


def lives(server: Server, root: Path) -> bool:
    with headwater.open(f"file:{root / 'data'}") as log:
        return call(server.url, "GET", "/v1/health").status == 200 and stored(log) == []


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        ((b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 40_000 + b"\r\n\r\n",), b"431"),
        ((b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 9_000,), b"431"),
        ((b"GET /" + b"x" * 40_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",), b"431"),
        ((b"GET /v1/hea",), b"408"),
        ((HEAD + b'Content-Length: 100\r\n\r\n{"id":1',), b"408"),
        ((HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n",), b"408"),
        ((b"\x16\x03\x01\x02\x00\x01\x00",), b"400"),
        ((b"GET / HTTP/9.9\r\n\r\n",), b"400"),
        ((HEAD + b"Content-Length: -1\r\n\r\n",), b"400"),
        ((HEAD + b"Content-Length: 99999999999\r\nConnection: close\r\n\r\n{",), b"413"),
    ],
)
def test_a_request_that_is_huge_slow_or_wrong_is_refused(
    hasty: Server, root: Path, parts: tuple[bytes, ...], status: bytes
) -> None:
    answer = talk(hasty, *parts)
    assert answer.startswith(b"HTTP/1.1 " + status), answer[:200]
    assert lives(hasty, root)


def test_a_request_that_comes_byte_by_byte_ends_in_time(hasty: Server, root: Path) -> None:
    began = time.monotonic()
    talk(hasty, *[bytes([each]) for each in HEAD[:40]], pause=0.02)
    assert time.monotonic() - began < 5 and lives(hasty, root)


def test_a_client_that_leaves_in_the_middle_writes_nothing(hasty: Server, root: Path) -> None:
    talk(hasty, HEAD + b'Content-Length: 100\r\n\r\n{"id":1}', finish=True)
    assert lives(hasty, root)


@pytest.mark.parametrize(
    "path",
    ["/v1/../../etc/passwd", "/v1/topics/%2e%2e%2f%2e%2e", "/v1/topics/%00", "/v1/views/%2e%2e/%2e%2e",
     "//v1", "/v1/views/" + "x" * 20_000, "/v1/views/a/%ff%fe", "/v1/topics/a%0d%0aSet-Cookie:x",
     "/static/../app.py"],
)  # fmt: skip
def test_tricks_with_paths_find_nothing(hasty: Server, root: Path, path: str) -> None:
    for method in ("GET", "POST"):
        answer = call(hasty.url, method, path, {"id": 1} if method == "POST" else None)
        assert answer.status in (400, 404, 405), path
        assert "set-cookie" not in answer.headers
    assert lives(hasty, root)
