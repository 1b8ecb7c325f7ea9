"""A private log, gone when it is closed.

It is a directory too, in memory where the system has a place for that, so that it behaves as the
embedded log does to the letter, and other processes can be handed its path.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from headwater.log.embedded.log import EmbeddedLog

_PREFIX = "headwater-memory-"


class MemoryLog(EmbeddedLog):
    """An embedded log in a temporary directory of its own."""

    def __init__(self, **options: Any):
        shared = Path("/dev/shm")
        parent = shared if os.access(shared, os.W_OK) else Path(tempfile.gettempdir())
        _sweep(parent)
        self.root = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=parent))
        self._process = os.getpid()
        super().__init__(self.root, **{"durability": "os", **options})
        self.url = "memory:"

    def close(self) -> None:
        """Forget everything."""
        super().close()
        self._forget()

    def __del__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        if os.getpid() == self._process:  # a forked child's end is not the log's
            shutil.rmtree(self.root, ignore_errors=True)


def _sweep(directory: Path) -> None:
    """Remove what killed processes have left."""
    for left in directory.glob(f"{_PREFIX}*"):
        try:
            os.kill(int(left.name.removeprefix(_PREFIX).split("-")[0]), 0)
        except ProcessLookupError:
            shutil.rmtree(left, ignore_errors=True)
        except (PermissionError, ValueError):
            continue
