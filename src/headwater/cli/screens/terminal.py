"""Streams that go on being written to while Spark starts.

What Java prints would spoil the screen, so it is started with descriptors 1 and 2 lent to a file.
Invariant: a console made here writes where its stream did, whatever becomes of the descriptors.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console


@contextmanager
def duplicated(stream: TextIO) -> Iterator[Console]:
    """Give a console on a copy of a stream's descriptor."""
    try:
        descriptor = os.dup(stream.fileno())
    except OSError:  # it has none
        yield Console(file=stream, highlight=False)
        return
    with os.fdopen(descriptor, "w", encoding=stream.encoding or "utf-8") as copy:
        yield Console(file=copy, highlight=False)
