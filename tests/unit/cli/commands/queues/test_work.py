"""``headwater work``: a function called with each message, until it is told to stop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Run

from headwater import Log

MAIL = """
import time
from pathlib import Path
from headwater.queue import RejectMessage

def note(message):
    with open("done.txt", "a") as file:
        file.write(f"{message.value['id']}\\n")

def send(message):
    if message.value["id"] < 0:
        raise RejectMessage("no such order")
    note(message)

async def send_async(message):
    note(message)

def fail(message):
    raise KeyError("gest")

def hang(message):
    Path("begun").touch()
    time.sleep(1000)

async def block(message):
    hang(message)

def slowly(message):
    Path("begun").touch()
    time.sleep(1)
    note(message)
"""


@pytest.fixture
def work(orders: Log, tmp_path: Path) -> Log:
    (tmp_path / "post.py").write_text(MAIL)
    with orders.producer("orders") as producer:
        producer.send_batch([{"id": n, "item": "tea", "at": None} for n in range(5)])
    return orders


def done(path: Path) -> list[int]:
    return sorted(map(int, (path / "done.txt").read_text().split()))


@pytest.mark.parametrize("function", ["send", "send_async"])
def test_every_message_is_given_to_the_function(run: Run, work: Log, tmp_path: Path, function: str) -> None:
    told = run("work", "orders", "--call", f"post.py:{function}", "--until-empty", "--concurrency", 2)
    assert (told.exit_code, told.stdout) == (0, "")
    assert told.stderr == "worker: 5 done, 0 given back, 0 dead\n"
    assert done(tmp_path) == list(range(5))


def test_a_message_that_dies_has_an_exit_code(run: Run, work: Log) -> None:
    with work.producer("orders") as producer:
        producer.send({"id": -1, "item": "tea", "at": None})
    told = run("work", "orders", "--call", "post.py:send", "--until-empty", "--max-deliveries", 2)
    assert told.exit_code == 1
    assert told.stderr.endswith("worker: 5 done, 0 given back, 1 dead\nlast error: no such order\n")
    with work.queue("orders", "workers") as queue:
        assert queue.settings.max_deliveries == 2
        assert [dead.reason for dead in queue.dead()] == ["no such order"]


def test_messages_that_failed_and_wait_are_told_with_an_exit_code(run: Run, work: Log) -> None:
    how = ("--until-empty", "--backoff", "1 hour", "--concurrency", 1)
    told = run("work", "orders", "--call", "post.py:fail", *how)
    assert told.exit_code == 1
    assert told.stderr.splitlines()[-3:] == [
        "worker: 0 done, 5 given back, 0 dead",
        "last error: KeyError: 'gest'",
        "worker: 5 that failed wait to be delivered again",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("function", ["hang", "block"])
def test_a_function_that_never_returns_does_not_keep_it_alive(
    work: Log, url: str, tmp_path: Path, function: str
) -> None:
    command = ["-m", "headwater", "work", "orders", "--call", f"post.py:{function}", "--log", url]
    with subprocess.Popen(
        [sys.executable, *command, "--stop-after", "100 milliseconds"], cwd=tmp_path
    ) as process:
        until = time.monotonic() + 120
        while not (tmp_path / "begun").exists() and time.monotonic() < until:
            time.sleep(0.02)
        process.terminate()
        assert process.wait(30) == 143
    with work.queue("orders", "workers") as queue:
        assert (queue.status().ready, queue.status().in_flight) == (5, 0)


@pytest.mark.parametrize(
    ("call", "reason"),
    [("post.py", "names no function"), ("post.py:sned", 'did you mean "send"'), ("pots.py:send", "no file")],
)
def test_what_cannot_be_called_is_refused(run: Run, work: Log, call: str, reason: str) -> None:
    told = run("work", "orders", "--call", call)
    assert told.exit_code == 2
    assert reason in told.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_lets_it_finish_what_it_has_begun(
    work: Log, url: str, tmp_path: Path, number: int, code: int
) -> None:
    command = [
        "-m",
        "headwater",
        "work",
        "orders",
        "--call",
        "post.py:slowly",
        "--concurrency",
        "2",
        "--log",
        url,
    ]
    with subprocess.Popen(
        [sys.executable, *command, "--metrics-port", "0"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        address = process.stderr.readline().split()[-1]
        until = time.monotonic() + 120
        while not (tmp_path / "begun").exists() and time.monotonic() < until:
            time.sleep(0.02)
        with urllib.request.urlopen(address) as answer:
            assert b"headwater" in answer.read()
        os.kill(process.pid, number)
        told = process.stderr.read()
        assert process.wait(60) == code
    assert "given back, 0 dead" in told
    with work.queue("orders", "workers") as queue:
        assert len(done(tmp_path)) + (queue.status().depth or 0) == 5
        assert (queue.status().in_flight, len(done(tmp_path)) in (2, 4)) == (0, True)
