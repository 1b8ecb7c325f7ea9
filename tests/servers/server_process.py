"""Servers that tests start: a free port on loopback, and an end by the process id.

Invariant: what was started is gone when ``stop`` returns, however it takes the request to end.
"""

from __future__ import annotations

import socket
import subprocess


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


def stop(process: subprocess.Popen[bytes], seconds: float = 10) -> None:
    """Ask a process to end, and kill it where it has not after some seconds."""
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
