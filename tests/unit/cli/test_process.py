"""What only a real process shows: exit codes, pipes, signals, and what is left after a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.unit.cli.contents import rows

from headwater import Log

pytestmark = pytest.mark.slow

Popen = subprocess.Popen[bytes]
PATIENCE = 60.0


@pytest.fixture
def start(url: str, tmp_path: Path) -> Callable[..., Popen]:
    """Start ``headwater`` in a process of its own."""
    # The tests' own processes must not leave memory logs where other runs look for theirs.
    environment = {**os.environ, "HEADWATER_LOG": url, "TMPDIR": str(tmp_path)}

    def started(*args: object) -> Popen:
        command = [sys.executable, "-c", "from headwater.cli import main; main()", *map(str, args)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        # A shell lets jobs in its background ignore Ctrl-C, and children inherit that.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            return subprocess.Popen(command, env=environment, cwd=tmp_path, **pipes)  # type: ignore[call-overload,no-any-return]
        finally:
            signal.signal(signal.SIGINT, before)

    return started


Start = Callable[..., Popen]


@contextmanager
def running(process: Popen) -> Iterator[Popen]:
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


def eventually(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def test_success_is_0_an_error_is_1_and_a_wrong_command_is_2(start: Start, orders: Log) -> None:
    for code, args in ((0, ["topic", "list"]), (1, ["consume", "nothing"]), (2, ["consume"])):
        process = start(*args)
        _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == code
        assert b"Traceback" not in errors


@pytest.mark.parametrize(("how", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_a_file_is_loaded_is_no_error_of_the_file(
    start: Start, tmp_path: Path, how: signal.Signals, code: int
) -> None:
    (tmp_path / "slow_shop.py").write_text("import time\nprint('begun', flush=True)\ntime.sleep(60)\n")
    with running(start("check", "slow_shop.py")) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"begun\n"
        process.send_signal(how)
        assert process.wait(PATIENCE) == code
        assert process.stderr.read() == b""


def test_lines_of_a_slow_pipe_are_appended_as_they_come(start: Start, orders: Log) -> None:
    with running(start("produce", "orders")) as process:
        assert process.stdin is not None
        for number in range(3):
            process.stdin.write(b'{"id": %d}\n' % number)
            process.stdin.flush()
            eventually(lambda number=number: len(rows(orders)) == number + 1)
        process.stdin.close()
        assert process.wait(PATIENCE) == 0


def test_csv_of_a_slow_pipe_is_appended_as_it_comes(start: Start, orders: Log) -> None:
    with running(start("produce", "orders", "--format", "csv")) as process:
        assert process.stdin is not None
        for line in (b"id,item\n1,tea\n", b'2,"a\nb"\n'):
            before = len(rows(orders))
            process.stdin.write(line)
            process.stdin.flush()
            eventually(lambda before=before: len(rows(orders)) == before + 1)


def test_follow_prints_records_as_they_arrive_and_ends_quietly_on_ctrl_c(start: Start, orders: Log) -> None:
    with (
        running(start("consume", "orders", "--follow", "--format", "ndjson")) as process,
        orders.producer("orders") as producer,
    ):
        assert process.stdout is not None
        for number in range(3):
            producer.send_batch([{"id": number}])
            assert json.loads(process.stdout.readline())["id"] == number
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=PATIENCE)
        assert (process.returncode, output, errors) == (130, b"", b"")


def test_a_group_is_left_on_sigterm_with_what_was_printed_committed(start: Start, orders: Log) -> None:
    with (
        running(start("consume", "orders", "--follow", "--group", "g", "--format", "ndjson")) as process,
        orders.producer("orders") as producer,
    ):
        assert process.stdout is not None
        producer.send_batch([{"id": 1}, {"id": 2}])
        process.stdout.readline(), process.stdout.readline()
        eventually(lambda: orders.groups() and orders.lag("g")[0].records == 0)
        process.terminate()
        assert process.wait(PATIENCE) == 143
    with orders.consumer("orders", "g") as member:
        eventually(lambda: member.assignment() == (0,))


@pytest.mark.parametrize("form", ["ndjson", "csv", "table"])
def test_a_closed_pipe_ends_it_quietly(start: Start, orders: Log, form: str) -> None:
    with orders.producer("orders") as producer:
        producer.send_batch([{"id": n, "item": "x" * 100} for n in range(20_000)])
    with running(start("consume", "orders", "--format", form)) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(PATIENCE) == 141
        assert process.stderr.read() == b""


def test_a_group_commits_nothing_that_a_closed_pipe_did_not_take(start: Start, orders: Log) -> None:
    with orders.producer("orders") as producer:
        producer.send_batch([{"id": n, "item": "x" * 1000} for n in range(5_000)])
    with running(start("consume", "orders", "--group", "g", "--format", "ndjson")) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(PATIENCE) == 141
    with orders.consumer("orders", "g", meta=True) as member:
        batch = member.poll(PATIENCE)
        assert batch is not None
        assert batch["_offset"][0].as_py() == 0


@pytest.mark.parametrize("moment", [0.0, 0.1, 0.3])
def test_a_killed_produce_that_is_run_again_adds_each_line_once(
    start: Start, log: Log, tmp_path: Path, moment: float
) -> None:
    log.create_topic("events", "id BIGINT, text STRING", key="id", partitions=3)
    count = 300_000
    text = "".join(f'{{"id": {n}, "text": "event {n}"}}\n' for n in range(count))
    (tmp_path / "events.ndjson").write_text(text)
    with running(start("produce", "events", "events.ndjson", "--producer", "import")) as process:
        eventually(lambda: log.describe("events").records or process.poll() is not None)
        time.sleep(moment)
        process.kill()
    again = start("produce", "events", "events.ndjson", "--producer", "import")
    _, errors = again.communicate(timeout=PATIENCE)
    assert again.returncode == 0, errors
    # A kill may leave half of an append, and whoever opens the partition next says that it is cut off.
    assert all(b"of an unfinished append" in line for line in errors.splitlines()), errors
    assert sorted(rows(log, "events", "id")) == list(range(count))


def test_an_interrupted_export_leaves_nothing(start: Start, orders: Log, tmp_path: Path) -> None:
    with orders.producer("orders") as producer:
        for first in range(0, 2_000_000, 100_000):
            producer.send_batch([{"id": first + n, "item": f"item {n}"} for n in range(100_000)])
    with running(start("export", "orders", "o.parquet")) as process:
        eventually(lambda: list(tmp_path.glob(".o.parquet*")) or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) in (130, 0)
        assert process.returncode == 0 or not list(tmp_path.glob("*.parquet"))
        assert not list(tmp_path.glob(".o.parquet*"))
