"""A client that takes nothing is bounded and told, and no burden to others; a killed server loses nobody."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from headwater.serve.push import routes
from headwater.serve.push.connection import EventStream
from headwater.serve.push.live_push import LivePush
from push_kit import EventReader, Shop, running

CHANGES = "/v1/views/totals/changes"
SERVER = """
import sys, uvicorn, headwater
from headwater.serve.app import create_app
from headwater.serve.http.served import Served
home, port = sys.argv[1:]
log, views = headwater.open(f"file:{home}/log"), headwater.open_views(home + "/views.db")
uvicorn.run(create_app(Served(log, {}, {"shop": views})), port=int(port), log_level="error")
"""


def test_a_slow_client_is_told_that_it_is_behind_and_resumes_while_others_get_everything(
    tmp_path: Path,
) -> None:
    shop = Shop(tmp_path)
    with shop.served() as served, running(served, LivePush(limit=50_000)) as server:
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", server.port))
        slow.sendall(f"GET {CHANGES} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        with EventReader(server.port, CHANGES) as quick:
            quick.until("ready")
            seen = []
            for n in range(20):  # about 9 MB: more than the operating system keeps for a client
                shop.commit(*((f"{city:04}" + "x" * 2_000, n, n) for city in range(100)))
                seen += [each.data["sequence"] for each in quick.take(100)]
        assert seen == list(range(1, 2_001))
        slow.settimeout(10)
        received = b""
        while piece := slow.recv(1 << 16):
            received += piece
            if b"event: behind" in received and received.endswith(b"0\r\n\r\n"):
                break
        slow.close()
        last = [line for line in received.split(b"\n") if line.startswith(b"id: ")][-1][4:].decode()
        assert b"event: behind" in received and int(last) < 2_000
        with EventReader(server.port, CHANGES, last) as again:
            rest = [each.data["sequence"] for each in again.take(2_000 - int(last) + 1)[1:]]
        assert rest == list(range(int(last) + 1, 2_001))
    shop.close()


def test_a_client_that_takes_nothing_is_dropped_with_all_that_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "EventStream", partial(EventStream, write_seconds=0.3))
    shop, push = Shop(tmp_path), LivePush(limit=1 << 30)
    with shop.served() as served, running(served, push) as server, socket.socket() as stuck:
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stuck.connect(("127.0.0.1", server.port))
        stuck.sendall(f"GET {CHANGES} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        stuck.recv(100)
        for n in range(20):  # about 9 MB: more than the operating system keeps for a client
            shop.commit(*((f"{city:04}" + "x" * 2_000, n, n) for city in range(100)))
        stuck.settimeout(10)
        received = 0
        with suppress(ConnectionResetError):
            time.sleep(2)
            while piece := stuck.recv(1 << 20):
                received += len(piece)
        assert received < 9_000_000
        with EventReader(server.port, CHANGES) as quick:
            quick.until("ready")
            shop.commit(("Oslo", 1, 1))
            assert quick.take(1)[0].data["new"]["city"] == "Oslo"
    shop.close()


@pytest.mark.faults
def test_a_client_of_a_server_that_was_killed_goes_on_without_missing_or_repeating(tmp_path: Path) -> None:
    shop, seen, last = Shop(tmp_path), [], None
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for _ in range(2):
        process = subprocess.Popen([sys.executable, "-c", SERVER, str(tmp_path), str(port)])
        reader = _connected(port, last or "0")
        shop.commit(*((f"c{n}", len(seen), n) for n in range(50)))
        for event in reader:
            seen += [event.data["sequence"]] if event.name == "change" else []
            last = reader.last
            if len(seen) % 50 == 30:
                break
        process.send_signal(signal.SIGKILL)
        process.wait()
        reader.close()
        shop.commit(*((f"d{n}", len(seen), n) for n in range(10)))
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(tmp_path), str(port)])
    newest = shop.store["totals"].sequence()
    with _connected(port, str(last)) as reader:
        seen += [each.data["sequence"] for each in reader.take(newest - len(seen) + 1)[1:]]
    process.kill()
    process.wait()
    shop.close()
    assert seen == list(range(1, newest + 1))


def _connected(port: int, last: str) -> EventReader:
    until = time.monotonic() + 120
    while True:
        try:
            return EventReader(port, CHANGES, last)
        except ConnectionRefusedError:
            assert time.monotonic() < until
            time.sleep(0.05)
