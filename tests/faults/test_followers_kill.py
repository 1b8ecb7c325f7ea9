"""Followers of a database under ``kill -9``, in turns of the capture, the database and the pipeline.

pgbench, random statements and random DDL go on meanwhile, and tables are read anew now and then, so that
kills hit snapshots and streams. At the end every follower is compared with its source, row by row.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

import headwater
import redis_server
from faults.followers.captured import NAME, TABLES, opened
from faults.followers.load import Load
from faults.followers.reading import followers, sources
from headwater.errors import UsageError
from postgres_server import Missing, Server

KILLS = int(os.environ.get("FAULT_KILLS", "2"))
SEED = int(os.environ.get("FAULT_SEED", "7"))
FOLDER = Path(__file__).with_name("followers")
TURNS = ("capture", "database", "pipeline")
BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java lives briefly here, and has no time to gain by compiling well."""
RESTART_SECONDS = 60.0
CATCH_UP_SECONDS = 600.0


class Processes:
    """What is killed: the capture, the pipeline and the server of the database."""

    def __init__(self, root: Path, database: str, server: Server, redis: str):
        self._root, self._database, self._server = root, database, server
        self._environment = {
            **os.environ,
            "FOLLOWERS_ROOT": str(root),
            "FOLLOWERS_DATABASE": database,
            "FOLLOWERS_REDIS": redis,
            "SPARK_SUBMIT_OPTS": BRIEF,
        }
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self.started: dict[str, float] = {}

    def start(self, kind: str, *options: str) -> subprocess.Popen[bytes]:
        """Start one that does not run."""
        if kind not in self._running:
            cli = "from headwater.cli import main; main()"
            command = {
                "capture": [str(FOLDER / "captured.py"), self._database, f"file:{self._root / 'log'}"],
                "pipeline": ["-c", cli, "run", str(FOLDER / "pipeline.py"), "--limit", "5000", *options],
            }[kind]
            with open(self._root / f"{kind}.log", "ab") as log:
                self._running[kind] = subprocess.Popen(
                    [sys.executable, *command],
                    stdout=log, stderr=log, start_new_session=True, env=self._environment,
                )  # fmt: skip
            self.started[kind] = time.monotonic()
        return self._running[kind]

    def kill(self, kind: str, chance: random.Random) -> None:
        """Kill one, which has to have held out until now."""
        if kind == "database":
            self._server.stop(chance.choice([signal.SIGKILL, signal.SIGQUIT]))
            restart(self._server)
            return
        assert self._running[kind].poll() is None, self.log(kind)
        self.end(kind)

    def end(self, kind: str) -> None:
        """End one, with all that it has started, if it runs."""
        process = self._running.pop(kind, None)
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def log(self, kind: str) -> str:
        """Return the end of what one has said."""
        return (self._root / f"{kind}.log").read_text()[-4000:]


def restart(server: Server) -> None:
    """Start a server anew, as soon as what the killed one has left behind is gone."""
    until = time.monotonic() + RESTART_SECONDS
    while True:
        try:
            return server.start()
        except Missing:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


@pytest.fixture
def redis() -> Iterator[str]:
    """The URL of a Redis server, or nothing where there is none."""
    with ExitStack() as stack:
        url = ""
        with suppress(redis_server.Missing):
            url = stack.enter_context(redis_server.running_server("--appendfsync", "always")).url
        yield url


@contextmanager
def working(database: str, folder: Path) -> Iterator[Load]:
    """A load on new tables; what a capture has made for itself in their database is removed at the end."""
    load = Load(database, folder, SEED)
    load.fill()
    try:
        yield load
    finally:
        load.stop_bench()
        headwater.drop_capture(database, NAME)


@pytest.mark.faults
@pytest.mark.timeout(KILLS * 60 + 1200)
def test_every_follower_ends_equal_to_its_source(
    server: Server, database: str, redis: str, tmp_path: Path
) -> None:
    chance, killed = random.Random(SEED), Counter[str]()
    processes = Processes(tmp_path, database, server, redis)
    with working(database, tmp_path) as load:
        first = transactions(database)
        try:
            for number in range(KILLS):
                kind = TURNS[number % len(TURNS)]
                load_until_due(load, processes, kind, chance)
                if number % 4 == 1:
                    resnapshot(processes, tmp_path, chance.choice(TABLES).table)
                    load.work(chance.uniform(0, 1))
                processes.kill(kind, chance)
                killed[kind] += 1
            load.work(1)
            load.stop_bench()
            catch_up(processes, tmp_path, database)
        finally:
            for kind in ("capture", "pipeline"):
                processes.end(kind)
        counts = compare(tmp_path, database, redis)
        written = transactions(database) - first
    print(f"\n{killed.total()} kills: {dict(killed)}; {written:,} transactions, also {dict(load.done)}")
    print(f"every row of each follower is that of its source: {counts}")


def load_until_due(load: Load, processes: Processes, kind: str, chance: random.Random) -> None:
    """Let everything work until the next of a kind is to be killed, at some moment of its work."""
    load.start_bench()
    processes.start("capture")
    if kind == "pipeline":
        processes.start("pipeline")
        lived = time.monotonic() - processes.started["pipeline"]
        load.work(max(chance.uniform(1, 3), chance.uniform(8, 25) - lived))
    else:
        load.work(chance.uniform(0.7, 3))


def resnapshot(processes: Processes, root: Path, table: str) -> None:
    """Ask the capture for a new snapshot, as soon as it has written down that it has begun."""
    until = time.monotonic() + RESTART_SECONDS
    while True:
        try:
            return headwater.resnapshot(f"file:{root / 'log'}", NAME, table)
        except UsageError:
            if time.monotonic() > until:
                raise AssertionError(processes.log("capture")) from None
            time.sleep(0.2)


def catch_up(processes: Processes, root: Path, database: str) -> None:
    """Let the capture and then the pipeline come to the end."""
    processes.end("capture")
    processes.end("pipeline")
    with opened(database, f"file:{root / 'log'}") as capture:
        capture.catch_up()
        assert not capture.state.stopped
    last = processes.start("pipeline", "--until-caught-up")
    assert last.wait(CATCH_UP_SECONDS) == 0, processes.log("pipeline")


def compare(root: Path, database: str, redis: str) -> dict[str, int]:
    """Compare each follower with its source, and return how many rows they have."""
    expected, held = sources(database), followers(root, database, redis)
    for name, rows in held.items():
        other = {id for id in rows.keys() | expected[name].keys() if rows.get(id) != expected[name].get(id)}
        shown = {id: (expected[name].get(id), rows.get(id)) for id in sorted(other)[:3]}
        assert not other, f"{name}: {len(other)} of {len(expected[name])} rows differ, as {shown!s:.600}"
    return {name: len(rows) for name, rows in held.items()}


def transactions(database: str) -> int:
    """Return how many transactions the server has counted that have written something."""
    with psycopg.connect(database) as db:
        found = db.execute("SELECT pg_current_xact_id()::text::bigint").fetchone()
    assert found is not None
    return int(found[0])
