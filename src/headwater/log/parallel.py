"""Work on large batches, shared among the cores: Arrow and numpy release the interpreter's lock.

Invariant: results come in the order of the items, and a forked child has threads of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

CORES = min(os.cpu_count() or 1, 8)
_pool: ThreadPoolExecutor | None = None


def spread(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Apply a function to each item, on all cores; a single item is done here and now."""
    global _pool
    every = list(items)
    if len(every) <= 1 or CORES == 1:
        return [function(item) for item in every]
    if _pool is None:
        _pool = ThreadPoolExecutor(CORES, thread_name_prefix="headwater")
    return list(_pool.map(function, every))


def pieces(count: int, least: int, most: int = 1 << 62) -> list[tuple[int, int]]:
    """Cut a range into even pieces, one per core, of ``least`` to ``most`` where it is long enough."""
    number = max(1, min(CORES, count // least), -(-count // most))
    bounds = [count * i // number for i in range(number + 1)]
    return list(pairwise(bounds))


def _forget_pool() -> None:
    global _pool
    _pool = None


os.register_at_fork(after_in_child=_forget_pool)
