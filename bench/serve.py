"""The server beside what one would put together instead, in one run: bounded load on loopback.

EventSender: a bare FastAPI endpoint that validates an event with pydantic and produces it to Kafka by
confluent-kafka, answering when the broker has confirmed it (``acks=all``), with librdkafka's own batching.
Reads: a FastAPI endpoint that selects a row of PostgreSQL by its key, on a pool of psycopg's connections.
Each side is one process; they are measured in turns. Ours has what the other has not: a schema, a write that
is synced to the disk before it is answered, positions, ETags.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import pyarrow as pa
from rich.console import Console
from rich.table import Table

import headwater
from bench.http_load import Load, measure, request
from headwater.sinks import Batch
from headwater.views import ViewStore

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "servers")]
CONNECTIONS = int(os.environ.get("BENCH_CONNECTIONS", 64))
SECONDS = float(os.environ.get("BENCH_SECONDS", 4))
ROUNDS, ROWS, BATCH = int(os.environ.get("BENCH_ROUNDS", 3)), 100_000, 100
CASES = os.environ.get("BENCH_CASES", "ingest reads").split()
console = Console(width=110)

OURS = """
import gc, sys, headwater
with headwater.open_server(log=sys.argv[1], settings=headwater.ServeSettings(port=0)) as server:
    gc.freeze()  # as `headwater serve` does
    print(server.url, flush=True)
    sys.stdin.read()
"""
THEIRS = """
import asyncio, socket, sys, threading
from datetime import datetime
import uvicorn
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel
app = FastAPI()

class Order(BaseModel):
    id: int
    item: str
    price: float
    at: datetime

if sys.argv[1] == "kafka":
    from confluent_kafka import Producer
    producer = Producer({"bootstrap.servers": sys.argv[2], "acks": "all", "linger.ms": 2})
    threading.Thread(target=lambda: [producer.poll(0.1) for _ in iter(int, 1)], daemon=True).start()

    def produced(order, loop):
        future = loop.create_future()
        def told(error, message):
            place = None if error else (message.partition(), message.offset())
            loop.call_soon_threadsafe(future.set_result, place)
        producer.produce("orders", order.model_dump_json(), str(order.id), on_delivery=told)
        return future

    @app.post("/topics/orders")
    async def one(order: Order):
        place = await produced(order, asyncio.get_running_loop())
        if place is None:
            raise HTTPException(503)
        return {"partition": place[0], "offset": place[1]}

    @app.post("/batches/orders")
    async def many(orders: list[Order]):
        loop = asyncio.get_running_loop()
        places = await asyncio.gather(*(produced(order, loop) for order in orders))
        if None in places:
            raise HTTPException(503)
        return {"rows": len(places)}
else:
    from psycopg_pool import AsyncConnectionPool
    pool = AsyncConnectionPool(sys.argv[2], min_size=8, max_size=8, open=False)
    app.router.on_startup.append(pool.open) if hasattr(app.router, "on_startup") else None

    @app.get("/views/totals/{id}")
    async def row(id: int):
        async with pool.connection() as db:
            cursor = await db.execute("SELECT id, name, amount, at FROM totals WHERE id = %s", (id,))
            found = await cursor.fetchone()
        if found is None:
            raise HTTPException(404)
        return dict(zip(("id", "name", "amount", "at"), found))

listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
config = uvicorn.Config(app, log_level="warning", access_log=False)
uvicorn.Server(config).run(sockets=[listener])
"""
POOLED = THEIRS.replace(
    "pool = AsyncConnectionPool(sys.argv[2], min_size=8, max_size=8, open=False)\n"
    '    app.router.on_startup.append(pool.open) if hasattr(app.router, "on_startup") else None',
    "from contextlib import asynccontextmanager\n"
    "    pool = AsyncConnectionPool(sys.argv[2], min_size=8, max_size=8, open=False)\n"
    "    @asynccontextmanager\n"
    "    async def opened(_):\n"
    "        async with pool:\n"
    "            yield\n"
    "    app.router.lifespan_context = opened",
)


@contextmanager
def program(code: str, *arguments: str) -> Iterator[int]:
    """Run a server and give its port."""
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline().rpartition(":")[2])
        finally:
            process.kill()


def event(number: int) -> dict[str, object]:
    return {"id": number, "item": "tea", "price": 1.5 + number, "at": "2026-01-02T03:04:05Z"}


def best(rounds: list[Load]) -> Load:
    assert not any(each.failed for each in rounds), "an answer was no success"
    return max(rounds, key=lambda each: each.rate)


def main() -> None:
    table = Table(
        title=f"HTTP, {CONNECTIONS} connections, best of {ROUNDS} rounds in turns", title_justify="left"
    )
    for column in ("what", "headwater", "p99", "instead", "p99", "ratio"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for name, unit, (ours, theirs) in chain(ingest(), [reads()] if "reads" in CASES else []):
        table.add_row(
            name, f"{ours.rate * unit:,.0f}/s", f"{ours.p99:.1f} ms", f"{theirs.rate * unit:,.0f}/s",
            f"{theirs.p99:.1f} ms", f"{ours.rate / theirs.rate:.2f}x",
        )  # fmt: skip
    console.print(table)


def compared(ours: tuple[int, list[bytes]], theirs: tuple[int, list[bytes]]) -> tuple[Load, Load]:
    """Measure both in turns."""
    rounds: tuple[list[Load], list[Load]] = ([], [])
    for port, requests in (ours, theirs):
        measure(port, requests, connections=CONNECTIONS, seconds=0.5)  # warm
    for _ in range(ROUNDS):
        for side, (port, requests) in zip(rounds, (ours, theirs), strict=True):
            side.append(measure(port, requests, connections=CONNECTIONS, seconds=SECONDS))
            time.sleep(0.2)
    return best(rounds[0]), best(rounds[1])


def ingest() -> Iterator[tuple[str, int, tuple[Load, Load]]]:
    if "ingest" not in CASES:
        return
    from confluent_kafka.admin import AdminClient, NewTopic

    from kafka_broker import running_broker

    one = [json.dumps(event(number)).encode() for number in range(500)]
    many = [
        json.dumps([event(number * BATCH + row) for row in range(BATCH)]).encode() for number in range(50)
    ]
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as root, running_broker() as broker:
        url = f"file:{root}/data"
        with headwater.open(url) as log:
            log.create_topic(
                "orders", "id BIGINT, item STRING, price DOUBLE, at TIMESTAMP", key="id", event_time="at"
            )
        admin = AdminClient({"bootstrap.servers": broker.servers})
        admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result()
        with program(OURS, url) as our_port, program(THEIRS, "kafka", broker.servers) as their_port:
            for name, unit, bodies, path in (
                ("events, one a request", 1, one, "/topics/orders"),
                (f"events, {BATCH} a request", BATCH, many, "/batches/orders"),
            ):
                mine = [request("POST", "/v1/topics/orders", body) for body in bodies]
                other = [request("POST", path, body) for body in bodies]
                yield name, unit, compared((our_port, mine), (their_port, other))


def reads() -> tuple[str, int, tuple[Load, Load]]:
    import psycopg

    from postgres_server import running_server

    ids = list(range(ROWS))
    rows = pa.table(
        {"id": ids, "name": [f"name {id}" for id in ids], "amount": [id / 7 for id in ids],
         "at": pa.array([1_767_323_045_000_000 + id for id in ids], pa.timestamp("us", "UTC"))}
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as root, running_server() as server:
        url, home = f"file:{root}/data", Path(root) / "data" / "pipelines" / "shop"
        with headwater.open(url) as log:
            log.create_topic("orders", "id BIGINT")
        home.mkdir(parents=True)
        with ViewStore(home / "views.db") as store:
            sink = store.sink("totals", "id BIGINT, name STRING, amount DOUBLE, at TIMESTAMP", "id")
            sink.begin()
            sink.commit(Batch(0, rows))
        with psycopg.connect(server.dsn, autocommit=True) as db:
            db.execute(
                "CREATE TABLE totals (id BIGINT PRIMARY KEY, name TEXT, amount FLOAT8, at TIMESTAMPTZ)"
            )
            with db.cursor().copy("COPY totals FROM STDIN") as copy:
                for row in rows.to_pylist():
                    copy.write_row(tuple(row.values()))
            db.execute("ANALYZE totals")
        paths = [f"/views/totals/{(number * 7919) % ROWS}" for number in range(1000)]
        with program(OURS, url) as our_port, program(POOLED, "postgres", server.dsn) as their_port:
            mine = [request("GET", f"/v1{path}") for path in paths]
            other = [request("GET", path) for path in paths]
            return "rows of a view, by key", 1, compared((our_port, mine), (their_port, other))


if __name__ == "__main__":
    main()
