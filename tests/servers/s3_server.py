"""A real S3 server for tests: moto's, a process of its own on a free loopback port.

It has an environment of its own below ``.cache``, made once, because the AWS client that it brings wants
older packages than those that are pinned here. Invariant: whatever is missing is told in one line
(``Missing``), and a server that was started is stopped by its process id.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path

from server_process import free_ports, stop

VERSION = "5.2.5"
PACKAGES = (f"moto[s3]=={VERSION}", "flask", "flask-cors")
CACHE = Path(__file__).resolve().parents[2] / ".cache" / f"moto-{VERSION}"
START_SECONDS, INSTALL_SECONDS = 60.0, 300.0


class Missing(Exception):
    """Something without which no server can run here."""


class Server:
    """A server that keeps its objects in memory."""

    def __init__(self, log: Path):
        self.port = free_ports(1)[0]
        command = [str(_program()), "-H", "127.0.0.1", "-p", str(self.port)]
        with open(log, "wb") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output, env=_environment())
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if time.monotonic() > deadline or self._process.poll() is not None:
                stop(self._process)
                lines = log.read_text().strip().splitlines() or ["it said nothing"]
                raise Missing(f"moto did not start within {START_SECONDS:.0f} seconds: {lines[-1]}")
            time.sleep(0.1)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def new_bucket(self) -> str:
        """Make a bucket that no other test has."""
        name = f"bucket-{uuid.uuid4().hex[:12]}"
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request("PUT", f"/{name}", headers={"Authorization": _NOBODY})
        assert connection.getresponse().status == 200
        return name

    def close(self) -> None:
        stop(self._process)

    def _answers(self) -> bool:
        with suppress(OSError):
            connection = HTTPConnection("127.0.0.1", self.port, timeout=5)
            connection.request("GET", "/moto-api/")
            return connection.getresponse().status == 200
        return False


_SCOPE = "test/20260101/us-east-1/s3/aws4_request"
_NOBODY = f"AWS4-HMAC-SHA256 Credential={_SCOPE}, SignedHeaders=host, Signature=0"


@contextmanager
def running_server() -> Iterator[Server]:
    """Start a server with nothing in it, and stop it at the end."""
    directory = Path(tempfile.mkdtemp(prefix="headwater-s3-"))
    try:
        server = Server(directory / "server.log")
        try:
            yield server
        finally:
            server.close()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _program() -> Path:
    """Return the server's program, installed if it is not there."""
    program = CACHE / "bin" / "moto_server"
    if not program.exists():
        _install()
    return program


def _install() -> None:
    """Make the environment beside its name, so that it is whole or not there."""
    CACHE.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f"{CACHE.name}-", dir=CACHE.parent))
    try:
        _run(sys.executable, "-m", "venv", str(draft))
        _run(str(draft / "bin" / "python"), "-m", "pip", "install", "--quiet", *PACKAGES)
        script = draft / "bin" / "moto_server"  # which names its interpreter by its path
        script.write_text(script.read_text().replace(str(draft), str(CACHE)))
        with suppress(OSError):  # another process was faster
            os.rename(draft, CACHE)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _environment() -> dict[str, str]:
    """Return the environment without where this process finds modules: pip would take those for installed."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def _run(*command: str) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=INSTALL_SECONDS, env=_environment()
        )
    except subprocess.TimeoutExpired:
        raise Missing(f"moto could not be installed within {INSTALL_SECONDS:.0f} seconds") from None
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["it said nothing"]
        raise Missing(f"moto could not be installed: {said[-1]}")
