"""A real MariaDB server for tests: started on a free loopback port, in a directory of its own.

The programs are those of the machine, else Debian's packages, fetched without root into ``.cache/mariadb``.
MariaDB does not like to run as root, so a root who tests runs it as another user. Invariant: whatever is
missing is told in one line (``Missing``), and a server that was started is stopped by its process id.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import debian_packages
import server_process
from server_process import free_ports

START_SECONDS = 60.0
USERS = ("mysql", "nobody")
"""As whom a root runs the server, the first that there is."""
PACKAGES = ("mariadb-server-core", "mariadb-client-core", "mariadb-common", "libaio1", "libnuma1",
            "liburing2", "libpcre2-8-0")  # fmt: skip

BINLOG = {
    "log-bin": "binlog",
    "binlog-format": "ROW",
    "binlog-row-image": "FULL",
    "binlog-row-metadata": "FULL",
    "server-id": 1,
}
"""What a server needs so that its changes can be captured."""


class Missing(Exception):
    """Something without which no server can run here."""


class Server:
    """A server that can be stopped, crashed and started again, with what it holds.

    ``settings`` are those of its next start; one that is None is left out.
    """

    def __init__(self, programs: Path, directory: Path):
        self.settings: dict[str, object] = dict(BINLOG)
        self._directory, self._data = directory, directory / "data"
        self._as: dict[str, Any] = _unprivileged()
        self._programs = _reachable(programs, directory) if self._as else programs
        self._process: subprocess.Popen[bytes] | None = None
        (self.port,) = free_ports(1)
        if self._as:
            os.chown(directory, self._as["user"], self._as["group"])
        self._initialise()

    def url(self, database: str, user: str = "root") -> str:
        return f"mariadb://{user}@127.0.0.1:{self.port}/{database}"

    def connect(self, database: str | None = None) -> Any:
        """Return a connection of PyMySQL, whose transactions begin and end by SQL alone."""
        import pymysql  # which a server alone does not need

        return pymysql.connect(
            host="127.0.0.1", port=self.port, user="root", database=database, autocommit=True,
            charset="utf8mb4",
        )  # fmt: skip

    def start(self) -> None:
        """Start, and wait until connections are accepted."""
        settings = {"datadir": self._data, "port": self.port, "bind-address": "127.0.0.1",
                    "socket": self._directory / "socket", "pid-file": self._directory / "pid",
                    "skip-name-resolve": 1, "debug-no-sync": 1,
                    "innodb-flush-log-at-trx-commit": 0, "innodb-buffer-pool-size": "32M",
                    "character-set-server": "utf8mb4", "collation-server": "utf8mb4_bin",
                    **self.settings}  # fmt: skip
        command = [str(self._programs / "sbin" / "mariadbd"), *self._base()]
        command += [f"--{name}={value}" for name, value in settings.items() if value is not None]
        with open(self._directory / "server.log", "ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd="/", env=self._environment(), **self._as
            )
        self._wait()

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Stop: SIGTERM shuts down, SIGKILL is a crash."""
        server_process.stop(self._process, 20, how)

    def _base(self) -> list[str]:
        messages = self._programs / "share" / "mysql"
        return ["--no-defaults", f"--basedir={self._programs}", f"--lc-messages-dir={messages}"]

    def _environment(self) -> dict[str, str]:
        """Libraries that came with the packages are found beside the programs."""
        known = {} if self._programs == Path("/usr") else debian_packages.environment(self._programs.parent)
        return {"PATH": os.environ.get("PATH", ""), "HOME": "/nonexistent", **known}

    def _initialise(self) -> None:
        done = subprocess.run(
            [str(self._programs / "bin" / "mariadb-install-db"), *self._base(), f"--datadir={self._data}",
             "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, cwd="/",
            env=self._environment(), **self._as,
        )  # fmt: skip
        if done.returncode:
            told = done.stdout.decode("utf-8", "replace").strip().splitlines() or ["it said nothing"]
            raise Missing(f"MariaDB could not make {self._data}: {told[-1]}")

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process is not None and self._process.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as greeted:
                if greeted.recv(1):
                    return
            time.sleep(0.05)
        told = (self._directory / "server.log").read_text().strip().splitlines() or ["it said nothing"]
        raise Missing(f"MariaDB did not start within {START_SECONDS:.0f} seconds: {told[-1]}")


@contextmanager
def running_server(**settings: object) -> Iterator[Server]:
    """Start a server with nothing in it, and stop it at the end; ``_`` in a setting's name is ``-``."""
    programs = find_programs()
    directory = Path(tempfile.mkdtemp(prefix="headwater-mariadb-"))
    server = None
    try:
        server = Server(programs, directory)
        server.settings |= {name.replace("_", "-"): value for name, value in settings.items()}
        server.start()
        yield server
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def own_database(server: Server) -> Iterator[str]:
    """Yield the name of a database of one's own, removed at the end."""
    name = f"t_{uuid.uuid4().hex[:12]}"
    with server.connect() as db:
        db.cursor().execute(f"CREATE DATABASE {name}")
    yield name
    with server.connect() as db:
        db.cursor().execute(f"DROP DATABASE IF EXISTS {name}")


def find_programs() -> Path:
    """Return the directory that has MariaDB's programs in ``bin`` and ``sbin``, or say what is missing."""
    for place in (Path("/usr"), Path("/usr/local")):
        if _complete(place):
            return place
    try:
        place = debian_packages.unpacked("mariadb", PACKAGES) / "usr"
    except debian_packages.NoPackages as error:
        raise Missing(f"no MariaDB, and {error}") from None
    if not _complete(place):
        raise Missing("no MariaDB: install one, such as Debian's mariadb-server")
    return place


def _complete(place: Path) -> bool:
    return (place / "sbin" / "mariadbd").exists() and (place / "bin" / "mariadb-install-db").exists()


def _reachable(programs: Path, directory: Path) -> Path:
    """Return programs that another user can reach: copies, where they lie in a closed directory."""
    if all(place.stat().st_mode & stat.S_IXOTH for place in (programs, *programs.resolve().parents)):
        return programs
    shutil.copytree(programs, directory / "programs", symlinks=True)
    return directory / "programs"


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
    raise Missing("MariaDB does not run as root, and there is no user to run it as")
