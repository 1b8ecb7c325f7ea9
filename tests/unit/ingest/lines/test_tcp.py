"""Lines by real sockets."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager

import headwater
from headwater import Log, ingest
from headwater.ingest import BackgroundIngest, IngestSettings


@contextmanager
def listening(
    log: Log, scheme: str, **settings: object
) -> Iterator[tuple[BackgroundIngest, tuple[str, int]]]:
    chosen = IngestSettings(**settings)  # type: ignore[arg-type]
    with BackgroundIngest(ingest.open(f"{scheme}://127.0.0.1:0", "t", log=log, settings=chosen)) as work:
        yield work, ("127.0.0.1", int(work.address.rpartition(":")[2]))


def await_count(work: BackgroundIngest, name: str, count: int) -> None:
    deadline = time.monotonic() + 120
    while work.status().counts.get(name, 0) < count and not work.ended(0.01):
        assert time.monotonic() < deadline


def column(log: Log, name: str) -> list[object]:
    return [value for batch in log.read("t") for value in batch.column(name).to_pylist()]


def test_lines_of_several_clients_are_rows_also_one_without_a_newline_at_its_end() -> None:
    with headwater.open("memory:") as log:
        log.create_topic("t", "id BIGINT")
        with listening(log, "tcp", on_error="dead_letter") as (work, address):
            for start in (0, 500):
                with socket.create_connection(address) as client:
                    lines = [b'{"id": %d}' % number for number in range(start, start + 500)]
                    client.sendall(b"\n".join(lines))
            with socket.create_connection(address) as client:
                client.sendall(b"odd\n")
            await_count(work, "lines", 1001)
        assert sorted(column(log, "id")) == list(range(1000))  # type: ignore[type-var]
        assert ingest.status(log, "t").counts == {"connections": 3, "lines": 1001, "rows": 1000, "dead": 1}


def test_a_bad_line_of_one_client_does_not_end_the_work_for_the_others() -> None:
    with headwater.open("memory:") as log:
        log.create_topic("t", "id BIGINT")
        with listening(log, "tcp") as (work, address):
            for number, line in enumerate([b"odd\n", b'{"id": 1}\n'], 1):
                with socket.create_connection(address) as client:
                    client.sendall(line)
                await_count(work, "lines", number)
        assert column(log, "id") == [1]
        assert [text for batch in log.read("t.dead") for text in batch["text"].to_pylist()] == ["odd"]


def test_a_connection_that_breaks_off_within_a_line_is_counted() -> None:
    with headwater.open("memory:") as log:
        log.create_topic("t", "line STRING")
        with listening(log, "tcp", text="line") as (work, address):
            client = socket.create_connection(address)
            client.sendall(b"whole\nbegun")
            await_count(work, "lines", 1)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
            await_count(work, "cut_off", 1)
        assert column(log, "line") == ["whole"]


def test_a_slow_log_slows_the_sender_and_little_waits_here() -> None:
    with headwater.open("memory:") as log:
        log.create_topic("t", "line STRING")
        opened = ingest.open("tcp://127.0.0.1:0", "t", log=log, settings=IngestSettings(text="line"))
        address = ("127.0.0.1", int(opened.address.rpartition(":")[2]))
        with socket.create_connection(address) as client:  # nobody reads yet, as if the log were away
            client.settimeout(0.3)
            sent, piece = 0, b"x" * 999 + b"\n"
            try:
                while sent < 1 << 28:
                    sent += client.send(piece * 1000)
            except TimeoutError:
                pass
            assert sent < 1 << 28
        with BackgroundIngest(opened) as work:
            await_count(work, "lines", sent // 1000)
        assert work.status().counts["rows"] == -(-sent // 1000)


def test_syslog_comes_by_udp_and_by_tcp_in_both_framings() -> None:
    with headwater.open("memory:") as log:
        with listening(log, "syslog") as (work, address):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                client.sendto(b"<34>1 - h su 1 - - by UDP\n", address)
            with socket.create_connection(address) as client:
                client.sendall(b"26 <34>1 - h su 1 - - counted<34>Oct 11 22:14:15 h su: by line\n")
            await_count(work, "rows", 3)
        messages = {str(text) for text in column(log, "message")}
        assert messages == {"by UDP", "counted", "Oct 11 22:14:15 h su: by line"}
        assert set(column(log, "app")) == {"su"}
