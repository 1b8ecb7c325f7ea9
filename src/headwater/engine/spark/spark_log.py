"""What Spark and its workers print goes to a file that does not grow for ever.

Java writes to the descriptors it was given when it started, so the file cannot be replaced while it
runs: what is in it is copied away, and the file is emptied in its place.

Invariant: the file and the copy of what was before are bounded, but for what is printed within ``EVERY``.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from headwater import durable

LIMIT = 10 << 20
EVERY = 10.0
"""Seconds between two checks of the size."""


@contextmanager
def printing_to(path: Path | None) -> Iterator[None]:
    """Let processes that are started here print to a file, which is kept short from now on."""
    if path is None:
        yield
        return
    durable.make(path.parent, private=True)
    shorten(path)
    threading.Thread(
        target=_shorten_periodically, args=(path.absolute(),), daemon=True, name="spark.log"
    ).start()
    originals = [os.dup(1), os.dup(2)]
    try:
        with open(path, "ab") as file:  # appending: what is printed after it was emptied begins at its start
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        yield
    finally:
        for number, descriptor in zip((1, 2), originals, strict=True):
            os.dup2(descriptor, number)
            os.close(descriptor)


def shorten(path: Path) -> None:
    """Move what a file has to ``NAME.1``, in place of what was there, if it is too long."""
    if path.is_file() and path.stat().st_size > LIMIT:
        shutil.copyfile(path, path.with_name(f"{path.name}.1"))
        os.truncate(path, 0)


def _shorten_periodically(path: Path) -> None:
    while True:
        time.sleep(EVERY)
        with suppress(OSError):  # a full disk, or a home that is gone: not worth a pipeline
            shorten(path)
