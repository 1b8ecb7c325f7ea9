"""``headwater demo`` as people start it: in a terminal until Ctrl-C, and in a script with its proof."""

from __future__ import annotations

import importlib
import os
import pty
import select
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

import headwater
from headwater import Pipeline
from headwater.cli.demo.proof import against_python
from headwater.pipeline import loading
from shop_kit import fresh_shop_modules

PATIENCE = 240.0
EVENTS = 3000
MAIN = "from headwater.cli import main; main()"
# The pseudo-terminal becomes the one that Ctrl-C comes from.
IN_TERMINAL = f"import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); {MAIN}"
demo_command = importlib.import_module("headwater.cli.commands.demo")


# Java lives briefly here, and has no time to gain by compiling well.
BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def environment(tmp_path: Path) -> dict[str, str]:
    """An environment by which each process that is started in it can be told."""
    terminal = {"TERM": "xterm", "COLUMNS": "100", "LINES": "30"}
    return {**os.environ, "TMPDIR": str(tmp_path), **terminal, "SPARK_SUBMIT_OPTS": BRIEF}


def processes(tmp_path: Path) -> list[str]:
    """The processes that live in a test's environment, whoever their parent is."""
    mark, found = f"TMPDIR={tmp_path}\0".encode(), []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (place / "environ").read_bytes():
                found.append((place / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:200])
    return found


def read_until(terminal: int, words: bytes | None) -> bytes:
    """Return what is shown until some words are, or (None) until the terminal is left."""
    seen, deadline = b"", time.monotonic() + PATIENCE
    while words is None or words not in seen:
        assert time.monotonic() < deadline, seen.decode()[-3000:]
        if not select.select([terminal], [], [], 0.1)[0]:
            continue
        try:
            new = os.read(terminal, 1 << 16)
        except OSError:  # nobody has the other side open any more
            new = b""
        if not new:
            assert words is None, seen.decode()[-3000:]
            break
        seen += new
    return seen


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    ours, theirs = pty.openpty()
    yield ours, theirs
    os.close(ours)


@pytest.mark.parametrize(
    "moment", [b"starting Spark", b"crm.db: "], ids=["at the start", "with an update shown"]
)
def test_ctrl_c_ends_the_live_demo_and_leaves_nothing(
    terminal: tuple[int, int], tmp_path: Path, moment: bytes
) -> None:
    ours, theirs = terminal
    process = subprocess.Popen(
        [sys.executable, "-c", IN_TERMINAL, "demo"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment(tmp_path),
        cwd=tmp_path,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        read_until(ours, moment)
        assert any("feed.py" in each for each in processes(tmp_path))
        os.write(ours, b"\x03")
        seen = read_until(ours, None).decode()
        assert process.wait(PATIENCE) == 0, seen[-3000:]
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert "Traceback" not in seen and "error:" not in seen, seen[-3000:]
    assert "stopping, after" in seen
    deadline = time.monotonic() + PATIENCE
    while left := processes(tmp_path):  # Java takes a moment to notice
        assert time.monotonic() < deadline, left
        time.sleep(0.1)
    assert not list(tmp_path.glob("headwater-demo-*"))


@pytest.fixture
def pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pipeline]:
    """The shop's pipeline, on what the demo has left in a directory."""
    monkeypatch.setattr(loading, "_OURS", {})
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "kept").mkdir()
    with fresh_shop_modules():
        yield demo_command._pipeline(demo_command._example(), tmp_path / "kept")


def wrong(pipeline: Pipeline, events: int) -> set[str]:
    _, verdicts = against_python(pipeline, events)
    return {verdict.node for verdict in verdicts if not verdict.ok}


def test_a_fixed_amount_is_processed_and_proved_and_a_wrong_row_is_found(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", MAIN, "demo", "--events", str(EVENTS), "--exit", "--dir", "kept"]
    told = subprocess.run(
        command, env=environment(tmp_path), cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE
    )
    assert told.returncode == 0, told.stdout + told.stderr
    lines = told.stdout.splitlines()
    assert "all rows are what a batch over the log gives, and what plain Python makes of the events" in lines
    assert any(line.startswith(f"{EVENTS:,} events processed and proved in") for line in lines)
    assert 'its log and views are kept in "kept"; go on with:' in lines
    spent = next(line for line in lines if line.startswith("spending ")).split()
    assert (int(spent[1]) > 0, spent[2:]) == (True, ["0", "0", "0"])

    assert headwater.verify_source(pipeline)[0].ok, "the customers are those of their database"
    assert wrong(pipeline, EVENTS // 2) >= {"spending", "deliveries"}  # as though somebody had written others
    with closing(sqlite3.connect(pipeline.home / "views.db")) as db, db:
        [number] = db.execute("SELECT id FROM views WHERE name = 'spending'").fetchone()
        db.execute(f"UPDATE rows_{number} SET orders = orders + 1 WHERE customer = 'ada'")  # noqa: S608
    assert wrong(pipeline, EVENTS) == {"spending"}
