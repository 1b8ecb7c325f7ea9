"""Live push to a thousand clients: the delay from commit to client, beside LISTEN/NOTIFY behind FastAPI.

The other way is what one would put together: a transaction that inserts and notifies, one connection that
listens, a queue per client, an endpoint that streams. It has no ids, no snapshot and no bounds. One more
client of each takes nothing at all. All on loopback; the subscribers are in a process of their own.
"""

from __future__ import annotations

import json
import os
import re
import select
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psycopg
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from headwater.sinks import Batch
from headwater.views import ViewStore

sys.path.append(str(Path(__file__).parents[1] / "tests" / "servers"))
from postgres_server import running_server  # the tests' own server
from server_process import free_ports

CLIENTS = int(os.environ.get("BENCH_CLIENTS", "1000"))
COMMITS, ROWS, PER_SECOND = 100, 5, 5
PADDING = "x" * 200
_NUMBER = re.compile(rb'"n":(\d+)')
console = Console(width=110)

OURS = """
import gc, sys, headwater
from headwater.serve.http.served import Served
from headwater.serve.server import Server
home, port = sys.argv[1:]
log, views = headwater.open(f"file:{home}/log"), headwater.open_views(home + "/views.db")
server = Server(Served(log, {}, {"shop": views}, headwater.ServeSettings(port=int(port))))
gc.freeze()  # as `headwater serve` does
server.wait()
"""
THEIRS = """
import asyncio, sys, psycopg, uvicorn
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
dsn, port = sys.argv[1:]
app, queues = FastAPI(), set()

async def listen():
    connection = await psycopg.AsyncConnection.connect(dsn, autocommit=True)
    await connection.execute("LISTEN changes")
    async for notice in connection.notifies():
        for queue in queues:
            queue.put_nowait(notice.payload)

@app.get("/changes")
async def changes():
    queue = asyncio.Queue()
    queues.add(queue)
    async def events():
        try:
            yield ": hello\\n\\n"
            while True:
                yield f"data: {await queue.get()}\\n\\n"
        finally:
            queues.discard(queue)
    return StreamingResponse(events(), media_type="text/event-stream")

async def main():
    listening = asyncio.create_task(listen())
    await uvicorn.Server(uvicorn.Config(app, port=int(port), log_level="error")).serve()

asyncio.run(main())
"""


@dataclass(frozen=True)
class Delays:
    """What the subscribers saw: how long each change took to each of them, and whether all came in order."""

    milliseconds: np.ndarray
    whole: int
    """How many subscribers got every change, in order."""


def main() -> None:
    table = Table(
        title=f"{CLIENTS:,} subscribers and one that takes nothing; {COMMITS} commits of {ROWS} rows, "
        f"{PER_SECOND} a second",
        title_justify="left",
    )
    for column in ("", "p50", "p99", "slowest", "every change in order"):
        table.add_column(column, justify="left" if not column else "right")
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as home:
        table.add_row("headwater, SSE", *_shown(ours(Path(home))))
    with running_server() as postgres:
        table.add_row("LISTEN/NOTIFY, FastAPI", *_shown(theirs(postgres.dsn)))
    console.print(table)


def ours(home: Path) -> Delays:
    with ViewStore(home / "views.db") as store:
        sink = store.sink("totals", "id BIGINT, n BIGINT, text STRING", "id")
        sink.begin()

        def commit(number: int) -> None:
            numbers = range(number * ROWS, (number + 1) * ROWS)
            columns = {"id": numbers, "n": numbers, "text": [PADDING] * ROWS}
            sink.commit(Batch(number, pa.table({name: list(values) for name, values in columns.items()})))

        with served(OURS, str(home), "/v1/health") as port:
            return measured(port, "/v1/views/totals/changes", commit)


def theirs(dsn: str) -> Delays:
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE TABLE totals (id BIGINT PRIMARY KEY, n BIGINT, text TEXT)")
        connection.commit()

        def commit(number: int) -> None:
            for n in range(number * ROWS, (number + 1) * ROWS):
                connection.execute("INSERT INTO totals VALUES (%s, %s, %s)", (n, n, PADDING))
                payload = json.dumps({"id": n, "n": n, "text": PADDING}, separators=(",", ":"))
                connection.execute("SELECT pg_notify('changes', %s)", (payload,))
            connection.commit()

        with served(THEIRS, dsn, "/docs") as port:
            return measured(port, "/changes", commit)


@contextmanager
def served(program: str, argument: str, alive: str) -> Iterator[int]:
    [port] = free_ports(1)
    process = subprocess.Popen([sys.executable, "-c", program, argument, str(port)])
    try:
        while True:
            with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}{alive}", timeout=1):
                break
            time.sleep(0.1)
        yield port
    finally:
        process.kill()
        process.wait()


def measured(port: int, path: str, commit: Callable[[int], None]) -> Delays:
    """Commit while the subscribers listen; a delay begins when the commit has returned."""
    command = [sys.executable, "-m", "bench.push", "subscribe", str(port), path]
    subscribers = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert subscribers.stdout is not None
    assert subscribers.stdout.readline() == "ready\n"
    committed = []
    for number in range(COMMITS):
        due = time.monotonic() + 1 / PER_SECOND
        commit(number)
        committed.append(time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))
    received = json.loads(subscribers.communicate(timeout=120)[0])
    # Of each subscriber and commit, when the last row of it came.
    times = np.array([each for each in received if len(each) == COMMITS])
    delays = (times - np.array(committed)) * 1000 if len(times) else np.array([np.nan])
    return Delays(delays.ravel(), len(times))


def subscribe(port: int, path: str) -> None:
    """Be all the subscribers: note when each commit has reached each of them whole and in order."""
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n".encode()
    slow = socket.create_connection(("127.0.0.1", port))
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.sendall(request)
    poll, clients = select.epoll(), dict[int, tuple[socket.socket, bytearray, list[int], list[float]]]()
    for _ in range(CLIENTS):
        client = socket.create_connection(("127.0.0.1", port))
        client.sendall(request)
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 200")
        clients[client.fileno()] = client, bytearray(), [], []
        poll.register(client.fileno(), select.EPOLLIN)
    time.sleep(1)
    print("ready", flush=True)
    unfinished, until = set(clients), time.monotonic() + COMMITS / PER_SECOND + 30
    while unfinished and time.monotonic() < until:
        for number, _ in poll.poll(1):
            client, buffer, seen, times = clients[number]
            buffer += client.recv(1 << 18)
            now, end = time.monotonic(), buffer.rfind(b"\n\n")
            if end < 0:
                continue
            for found in _NUMBER.findall(buffer[:end]):
                seen.append(int(found))
                if len(seen) % ROWS == 0:
                    times.append(now)
            del buffer[:end]
            if len(seen) >= COMMITS * ROWS:
                unfinished.discard(number)
    wanted = list(range(COMMITS * ROWS))
    print(json.dumps([times if seen == wanted else [] for _, _, seen, times in clients.values()]))


def _shown(delays: Delays) -> tuple[str, ...]:
    middle, high, most = np.percentile(delays.milliseconds, [50, 99, 100])
    return f"{middle:.1f} ms", f"{high:.1f} ms", f"{most:.1f} ms", f"{delays.whole:,} of {CLIENTS:,}"


if __name__ == "__main__":
    if sys.argv[1:2] == ["subscribe"]:
        subscribe(int(sys.argv[2]), sys.argv[3])
    else:
        main()
