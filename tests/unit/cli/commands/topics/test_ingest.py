"""``headwater ingest`` and ``feed``, in a process of its own where it has to be ended by a signal."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Run

import headwater
from headwater import Log, ingest
from headwater.ingest import Feed

pytestmark = pytest.mark.slow


@contextmanager
def running(*arguments: str, url: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the command; yield it and the address that it listens at, and end it if that is still due."""
    command = [sys.executable, "-m", "headwater", *arguments]
    environment = {**os.environ, "HEADWATER_LOG": url}
    with subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # in the back it is ignored
    ) as process:
        try:
            assert process.stderr is not None
            told = process.stderr.readline()
            yield process, told.partition(",")[0]
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_all_that_came_written(number: int, url: str) -> None:
    with running("ingest", "statsd://127.0.0.1:0", "--topic", "metrics", url=url) as (process, address):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.sendto(b"a:1|c\nbad", ("127.0.0.1", int(address.rpartition(":")[2])))
        process.send_signal(number)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert output == "metrics: ended, 1 datagram, 2 lines, 1 row, 1 malformed\n", errors
    with headwater.open(url) as log:
        assert [row["value"] for batch in log.read("metrics") for row in batch.to_pylist()] == [1.0]


def test_the_status_is_that_of_whatever_process_runs_it(run: Run, url: str) -> None:
    with headwater.open(url) as log, ingest.open("statsd://127.0.0.1:0", "metrics", log=log) as work:
        work.counts.add(rows=3, malformed=1)
        work.checkpoint(force=True)
    result = run("ingest", "status", "--name", "metrics")
    assert result.exit_code == 0, result.stderr
    assert re.fullmatch(r"metrics: running, 3 rows, 1 malformed\nnoted .* ago\n", result.stdout)
    told = json.loads(run("ingest", "status", "--name", "metrics", "--format", "ndjson").stdout)
    assert told["counts"] == {"rows": 3, "malformed": 1}


def test_a_url_that_is_no_way_in_is_refused(run: Run, tmp_path: Path) -> None:
    result = run("ingest", "udp://x", "--topic", "t")
    assert result.exit_code == 2
    assert result.stderr.startswith('error: there is no way in named "udp://x"\nhint: ')


def test_a_topic_is_sent_until_it_is_ended(orders: Log, url: str) -> None:
    with Feed(orders, "orders", "127.0.0.1:0") as feed:
        with orders.producer("orders") as producer:
            producer.send_batch([{"id": 1}, {"id": 2}])
        command = [
            sys.executable,
            "-m",
            "headwater",
            "feed",
            "orders",
            "--to",
            feed.address,
            "--from",
            "earliest",
        ]
        environment = {**os.environ, "HEADWATER_LOG": url}
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
            assert feed._reader.wait(60)
            process.send_signal(signal.SIGTERM)
            output, _ = process.communicate(timeout=60)
        assert output.startswith("sent 2 records in ")
        assert process.returncode == 143
        assert [row["id"] for batch in feed.poll(5.0) for row in batch.to_pylist()] == [1, 2]


def test_an_address_without_a_port_is_refused(run: Run, orders: Log) -> None:
    result = run("feed", "orders", "--to", "239.0.0.1")
    assert result.exit_code == 2
    assert "names no port" in result.stderr
