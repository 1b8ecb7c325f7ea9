"""``headwater`` in processes of its own: a server that is stopped, killed and started again at its address.

Invariant: what was started is gone when ``stop`` or ``kill`` returns.
"""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from server_process import free_ports, stop

STARTING = 120.0


class HeadwaterServer:
    """A server of the pipeline in a file, always at the same address."""

    def __init__(self, folder: Path, file: Path | str):
        self.folder, self._file = folder, str(file)
        [self.port] = free_ports(1)
        self.address = f"http://127.0.0.1:{self.port}/"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._process = start_headwater(self.folder, "serve", self._file, "--port", str(self.port))
        wait_until(self._answers)

    def stop(self) -> None:
        """Ask it to end, and wait for that."""
        stop(self._process)

    def kill(self) -> None:
        """End it at once."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def _answers(self) -> bool:
        assert self._process is not None and self._process.poll() is None, "the server has ended"
        try:
            with urllib.request.urlopen(f"{self.address}v1/health", timeout=5):
                return True
        except OSError:
            return False


def start_headwater(folder: Path, *command: str) -> subprocess.Popen[bytes]:
    """Start a command in a folder, where a file of its name gets what it prints."""
    with (folder / f"{command[0]}.log").open("ab") as out:
        whole = [sys.executable, "-m", "headwater", *command]
        return subprocess.Popen(whole, cwd=folder, stdout=out, stderr=out)


def wait_until(happened: Callable[[], bool], seconds: float = STARTING) -> None:
    """Wait for something that takes as long as Spark does to start."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "it has not happened in time"
        time.sleep(0.2)
