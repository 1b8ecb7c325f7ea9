"""Servers that tests start: a free port on loopback, and an end by the process id.

Invariant: what was started is gone when ``stop`` returns, however it takes the request to end.
"""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TypeVar

import pytest

S = TypeVar("S")


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on now, all of them different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def stop(
    process: subprocess.Popen[bytes] | None, seconds: float = 10, how: signal.Signals = signal.SIGTERM
) -> None:
    """Ask a process, if it runs, to end, and kill it where it has not after some seconds."""
    if process is None or process.poll() is not None:
        return
    process.send_signal(how)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def or_skipped(what: str, starting: AbstractContextManager[S], missing: type[Exception]) -> Iterator[S]:
    """Start a server; where the machine cannot have it, its tests are skipped, and one line tells why."""
    with ExitStack() as stack:
        try:
            started = stack.enter_context(starting)
        except missing as reason:
            pytest.skip(f"{what} tests: {reason}")
        yield started
