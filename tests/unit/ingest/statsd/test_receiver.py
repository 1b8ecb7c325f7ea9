"""StatsD over a real socket."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

import headwater
from headwater import Log, ingest
from headwater.errors import SourceRefused
from headwater.ingest import BackgroundIngest, IngestSettings
from headwater.ingest.statsd import receiver

Send = Callable[[bytes], None]


@contextmanager
def statsd(log: Log, **settings: object) -> Iterator[tuple[BackgroundIngest, Send]]:
    opened = ingest.open(
        "statsd://127.0.0.1:0",
        "metrics",
        log=log,
        settings=IngestSettings(**settings),  # type: ignore[arg-type]
    )
    with BackgroundIngest(opened) as work, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect(("127.0.0.1", int(work.address.rpartition(":")[2])))
        yield work, lambda datagram: client.sendall(datagram)


def await_count(work: BackgroundIngest, name: str, count: int) -> None:
    deadline = time.monotonic() + 120
    while work.status().counts.get(name, 0) < count and not work.ended(0.01):
        assert time.monotonic() < deadline


def test_what_came_in_is_written_when_it_is_stopped() -> None:
    with headwater.open("memory:") as log:
        with statsd(log) as (work, send):
            for _ in range(100):
                send(b"views:2|c\nviews:3|c|@0.5|#page:a")
            send(b"broken\n_sc|x|0")
            await_count(work, "lines", 202)
        rows = [row for batch in log.read("metrics") for row in batch.to_pylist()]
        assert sorted((row["tags"], row["value"]) for row in rows) == [([], 200.0), (["page:a"], 600.0)]
        told = ingest.status(log, "metrics")
        assert (told.state, told.losses) == ("ended", {"malformed": 1, "not_taken": 1})
        assert told.counts["datagrams"] == 101
        assert told.counts["rows"] == 2


def test_raw_samples_are_rows_of_their_own() -> None:
    with headwater.open("memory:") as log:
        with statsd(log, raw=True) as (work, send):
            send(b"t:1:2|ms")
            await_count(work, "rows", 2)
        values = [value for batch in log.read("metrics") for value in batch.column("value").to_pylist()]
        assert values == [1.0, 2.0]


def test_an_interval_ends_while_more_comes() -> None:
    with headwater.open("memory:") as log, statsd(log, flush="50 milliseconds") as (work, send):
        for round_ in range(1, 3):
            send(b"a:1|c")
            await_count(work, "rows", round_)


def test_what_the_log_is_too_slow_for_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver, "WAITING_BYTES", -1)
    with headwater.open("memory:") as log:
        with statsd(log) as (work, send):
            send(b"a:1|c")
            await_count(work, "overrun", 1)
        assert ingest.status(log, "metrics").losses == {"overrun": 1}


def test_datagrams_that_the_kernel_has_no_room_for_are_counted() -> None:
    with headwater.open("memory:") as log:
        with ingest.open("statsd://127.0.0.1:0", "metrics", log=log) as opened:
            opened._reader._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # type: ignore[attr-defined]
            port = int(opened.address.rpartition(":")[2])
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                for _ in range(200):
                    client.sendto(b"a:1|c", ("127.0.0.1", port))
            stop = threading.Event()
            stop.set()
            opened.run(stop)
        counts = ingest.status(log, "metrics").counts
        assert counts["datagrams"] + counts["dropped_by_kernel"] == 200
        assert counts["dropped_by_kernel"] > 0


def test_a_port_that_is_taken_is_told() -> None:
    with headwater.open("memory:") as log, statsd(log) as (work, _):
        with pytest.raises(SourceRefused, match="cannot listen on"):
            ingest.open(work.address, "others", log=log)
        assert "others" not in {topic.name for topic in log.topics()}
