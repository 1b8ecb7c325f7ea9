"""A process at work that is killed with ``kill -9`` after a random while."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def killed_after(chance: random.Random, arguments: Sequence[str | Path]) -> Iterator[Callable[[], bool]]:
    """Run a Python program meanwhile, and kill it at the end; yield what tells when that is due."""
    process = subprocess.Popen([sys.executable, *arguments])
    until = time.monotonic() + chance.uniform(0.7, 2.5)
    try:
        yield lambda: time.monotonic() >= until
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        process.wait()
