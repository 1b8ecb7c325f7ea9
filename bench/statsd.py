"""StatsD: datagrams a second that one core receives and parses, beside a plain Python server in the same run.

A process on one core sends as fast as the system lets it; the receiver, on another core alone, counts what it
has parsed. Beside it, the same datagrams go to what one writes in a few lines: ``socketserver`` and a dict.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import socketserver
import subprocess
import sys
import time
from collections import defaultdict

from rich.console import Console
from rich.table import Table

SECONDS, TURNS, DIFFERENT, AT_ONCE = 4.0, 3, 5000, 64
console = Console(width=110)


def datagrams() -> list[bytes]:
    kinds = (b"c", b"ms", b"g")
    return [
        b"shop.requests.%d:%d|%b|#env:prod,host:h%d" % (n % 200, n % 100, kinds[n % 3], n % 20)
        for n in range(DIFFERENT)
    ]


def main() -> None:
    table = Table(title="StatsD on one core", title_justify="left")
    for column in ("", "sent a second", "parsed a second", "parsed a CPU second", "share parsed"):
        table.add_column(column, justify="right" if column else "left")
    best: dict[str, float] = {}
    best_cpu: dict[str, float] = {}
    for _ in range(TURNS):
        for who in ("headwater", "headwater raw", "socketserver"):
            result = turn(who)
            best[who] = max(best.get(who, 0.0), result["parsed"])
            best_cpu[who] = max(best_cpu.get(who, 0.0), result["parsed_cpu"])
            table.add_row(
                who,
                *(f"{result[name]:,.0f}" for name in ("sent", "parsed", "parsed_cpu")),
                f"{result['parsed'] / result['sent']:.0%}",
            )
    console.print(table)
    ratio, cpu = (each["headwater"] / each["socketserver"] for each in (best, best_cpu))
    console.print(f"ratio of the best: {ratio:.1f}, and {cpu:.1f} by CPU seconds")


def turn(who: str) -> dict[str, float]:
    """Send for some seconds; return rates."""
    receiver = subprocess.Popen(
        [sys.executable, "-m", "bench.statsd", "receive", who], stdout=subprocess.PIPE, stdin=subprocess.PIPE
    )
    assert receiver.stdout is not None
    port = int(receiver.stdout.readline())
    command = [sys.executable, "-m", "bench.statsd", "send", str(port)]
    sent = int(subprocess.run(command, check=True, capture_output=True).stdout)
    output, _ = receiver.communicate(b"\n")
    told = json.loads(output)
    parsed, cpu = told["parsed"], told["cpu"]
    return {"sent": sent / SECONDS, "parsed": parsed / SECONDS, "parsed_cpu": parsed / cpu}


def on_core(number: int) -> None:
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[number % len(cores)]})


def send(port: int) -> None:
    """Send in bulk, and print how many datagrams that were."""
    from headwater.ingest.datagrams import _Message, _Span

    on_core(1)
    library = ctypes.CDLL(None)
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    opened.connect(("127.0.0.1", port))
    texts = [ctypes.create_string_buffer(each, len(each)) for each in datagrams()]
    spans = [_Span(ctypes.addressof(text), len(text)) for text in texts]
    messages = (_Message * len(spans))()
    for message, span in zip(messages, spans, strict=True):
        message.header.spans, message.header.span_count = ctypes.pointer(span), 1
    size, count, at, end = ctypes.sizeof(_Message), 0, 0, time.monotonic() + SECONDS
    while time.monotonic() < end:
        done = library.sendmmsg(opened.fileno(), ctypes.byref(messages, at * size), AT_ONCE, 0)
        count += max(done, 0)
        at = (at + AT_ONCE) % (len(spans) - AT_ONCE)
    print(count)


def receive(who: str) -> None:
    """Print the port, receive until a line comes, and print what was parsed and the CPU seconds."""
    on_core(0)
    if who == "socketserver":
        receive_plainly()
    else:
        receive_here(raw=who.endswith("raw"))


def receive_here(raw: bool) -> None:
    import headwater
    from headwater import ingest

    settings = ingest.IngestSettings(flush="1 second", raw=raw)
    with headwater.open("memory:") as log:
        opened = ingest.open("statsd://127.0.0.1:0", "metrics", log=log, settings=settings)
        with ingest.BackgroundIngest(opened) as work:
            before = time.process_time()
            print(work.address.rpartition(":")[2], flush=True)
            sys.stdin.readline()
        print(json.dumps({"parsed": work.status().counts["lines"], "cpu": time.process_time() - before}))


def receive_plainly() -> None:
    import threading

    counters: dict[tuple[str, str], float] = defaultdict(float)
    gauges: dict[tuple[str, str], float] = {}
    timers: dict[tuple[str, str], list[float]] = defaultdict(list)
    lines = [0]

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            for line in self.request[0].decode().split("\n"):
                head, kind, *more = line.split("|")
                name, _, value = head.partition(":")
                tags = next((each[1:] for each in more if each.startswith("#")), "")
                if kind == "c":
                    counters[name, tags] += float(value)
                elif kind == "g":
                    gauges[name, tags] = float(value)
                elif kind == "ms":
                    timers[name, tags].append(float(value))
                lines[0] += 1

    with socketserver.UDPServer(("127.0.0.1", 0), Handler) as server:
        server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        before = time.process_time()
        print(server.server_address[1], flush=True)
        sys.stdin.readline()
        print(json.dumps({"parsed": lines[0], "cpu": time.process_time() - before}))
        server.shutdown()


if __name__ == "__main__":
    if sys.argv[1:2] == ["send"]:
        send(int(sys.argv[2]))
    elif sys.argv[1:2] == ["receive"]:
        receive(sys.argv[2])
    else:
        main()
