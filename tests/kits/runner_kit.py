"""A runner at work beside a test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from headwater.engine.runner import Runner


@contextmanager
def running(runner: Runner) -> Iterator[None]:
    """Let a runner run in a thread of its own, until the block ends."""
    thread = threading.Thread(target=runner.run, args=(lambda: None, 0.1))
    thread.start()
    try:
        yield
    finally:
        runner.stop()
        thread.join()
