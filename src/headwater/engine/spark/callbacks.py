"""Java reaches this process however many files it has open.

py4j waits for Java's connections with ``select``, which refuses a file descriptor of 1,024 or more: its
thread ends, and ``foreachBatch`` waits for ever for an answer. Here py4j is given ``poll``, which takes any.
"""

from __future__ import annotations

import selectors
from collections.abc import Iterable
from socket import socket
from types import SimpleNamespace

from py4j import java_gateway


def accept_on_any_descriptor() -> None:
    """Let py4j, in this process, wait for connections with ``poll``."""
    java_gateway.select = SimpleNamespace(select=_select)


def _select(
    read: Iterable[socket], write: object, exceptional: object, timeout: float | None = None
) -> tuple[list[object], list[object], list[object]]:
    """Do what ``select.select`` does, for reading, which is all that py4j asks for."""
    with selectors.PollSelector() as selector:
        for each in read:
            selector.register(each, selectors.EVENT_READ)
        return [key.fileobj for key, _ in selector.select(timeout)], [], []
