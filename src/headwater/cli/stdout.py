"""Keeps a command's result apart from what a user's code prints.

A command writes its result in the thread that it runs in; node functions, folds and functions of sinks
are called in others. Invariant: what other threads print never gets between the lines of a result.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO


class _OneThreadsStdout:
    """Stdout for one thread, and stderr for all others."""

    def __init__(self, stdout: TextIO):
        self._stdout, self._thread = stdout, threading.current_thread()

    def __getattr__(self, name: str) -> Any:
        same = threading.current_thread() is self._thread
        return getattr(self._stdout if same else sys.stderr, name)


@contextmanager
def results_only() -> Iterator[None]:
    """Keep stdout for this thread within the block: what other threads print goes to stderr."""
    before = sys.stdout
    sys.stdout = _OneThreadsStdout(before)
    try:
        yield
    finally:
        sys.stdout = before
