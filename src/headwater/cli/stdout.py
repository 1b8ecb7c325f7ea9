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


class _OwnThreads:
    """Stdout for one thread, and stderr for all others."""

    def __init__(self, stdout: TextIO):
        self._stdout, self._thread = stdout, threading.current_thread()

    def __getattr__(self, name: str) -> Any:
        own = threading.current_thread() is self._thread
        return getattr(self._stdout if own else sys.stderr, name)


@contextmanager
def kept_for_results() -> Iterator[None]:
    """Let what other threads print within the block go to stderr."""
    before = sys.stdout
    sys.stdout = _OwnThreads(before)
    try:
        yield
    finally:
        sys.stdout = before
