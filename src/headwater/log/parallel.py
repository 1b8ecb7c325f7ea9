"""Work on large batches, shared among the cores: Arrow and numpy release the interpreter's lock.

Invariant: what runs in the pool waits for nothing else in it, and a forked child has a pool of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

CORES = min(os.cpu_count() or 1, 8)
_pool: ThreadPoolExecutor | None = None


def submit(function: Callable[[Item], Result], item: Item) -> Future[Result]:
    """Begin to apply a function to an item, on another thread."""
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(CORES, thread_name_prefix="headwater")
    return _pool.submit(function, item)


def done(result: Result) -> Future[Result]:
    """Return a result in the form of one that was waited for."""
    future: Future[Result] = Future()
    future.set_result(result)
    return future


def pieces(count: int, least: int, most: int = 1 << 62) -> list[tuple[int, int]]:
    """Cut a range into even pieces, one per core, of ``least`` to ``most`` where it is long enough."""
    number = max(1, min(CORES, count // least), -(-count // most))
    bounds = [count * i // number for i in range(number + 1)]
    return list(pairwise(bounds))


def _forget_pool() -> None:
    global _pool
    _pool = None


os.register_at_fork(after_in_child=_forget_pool)
