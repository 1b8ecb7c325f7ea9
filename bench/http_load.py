"""A load generator for HTTP on loopback: raw sockets, each connection with one request at a time.

It costs little beside what it measures: requests are bytes that were made beforehand, and of an answer only
the status and the length are read. It is a program of its own, so that servers can be measured from outside.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Load:
    """What came of a run: requests a second, milliseconds in the middle and of the slowest, failures."""

    rate: float
    p50: float
    p99: float
    failed: int


def measure(
    port: int, requests: list[bytes], *, connections: int, seconds: float, processes: int = 1
) -> Load:
    """Send requests, in turn, on some connections for some seconds."""
    given = json.dumps([each.decode("latin-1") for each in requests])
    share = str(connections // processes)
    command = [sys.executable, str(Path(__file__)), str(port), share, str(seconds)]
    children = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(processes)
    ]
    told = [json.loads(child.communicate(given)[0]) for child in children]
    times = sorted(each for one in told for each in one["times"])
    failed = sum(one["failed"] for one in told)
    return Load(
        len(times) / max(one["seconds"] for one in told),
        1000 * times[len(times) // 2],
        1000 * times[int(len(times) * 0.99)],
        failed,
    )


def request(method: str, path: str, body: bytes = b"", headers: str = "") -> bytes:
    """Return a request as it goes over the wire."""
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


async def _client(
    port: int, requests: list[bytes], until: float, times: list[float], failed: list[int]
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    number = id(writer) % len(requests)
    while True:
        began = time.perf_counter()
        if began > until:
            break
        writer.write(requests[number % len(requests)])
        head = await reader.readuntil(b"\r\n\r\n")
        at = head.lower().index(b"content-length:") + 15
        await reader.readexactly(int(head[at : head.index(b"\r", at)]))
        times.append(time.perf_counter() - began)
        failed[0] += head[9:10] != b"2"
        number += 1
    writer.close()


async def _run(port: int, connections: int, seconds: float, requests: list[bytes]) -> None:
    times: list[float] = []
    failed = [0]
    began = time.perf_counter()
    await asyncio.gather(
        *(_client(port, requests, began + seconds, times, failed) for _ in range(connections))
    )
    print(json.dumps({"times": times, "failed": failed[0], "seconds": time.perf_counter() - began}))


if __name__ == "__main__":
    import uvloop

    texts = json.loads(sys.stdin.read())
    port, connections, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    uvloop.run(_run(port, connections, seconds, [each.encode("latin-1") for each in texts]))
