"""Decoded states of buckets, kept in a worker's memory from one micro-batch to the next.

A state changes in place, so an entry is worth something only while what is stored is exactly what
it was made from. That is known by the random name of the newest chunk's file: a task that was retried,
or run twice at a time, has stored another one.

Invariant: an entry is out of the cache while it is being changed, and comes back only with the
name of what was stored; one whose name is in no manifest counts for nothing.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MIN_BYTES = 256 << 20
OVERHEAD = 4
"""How many times larger a decoded state is than its chunks; a guess on the safe side."""

_CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where a container's memory limit can be read, by the version of cgroups."""
Key = tuple[str, int]


def default_limit() -> int:
    """Return how many bytes of states a process may keep: its part of a quarter of the memory.

    There is a worker for each core, and the driver. ``HEADWATER_CACHE_BYTES`` says it instead.
    """
    limit = os.environ.get("HEADWATER_CACHE_BYTES")
    if limit is not None:
        return int(limit)
    return max(MIN_BYTES, memory_bytes() // 4 // ((os.cpu_count() or 1) + 1))


def memory_bytes() -> int:
    """Return the bytes of memory of this machine, or of the container."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in map(Path, _CONTAINER):
        if path.exists() and (limit := path.read_text().strip()).isdecimal():
            limits.append(int(limit))
    return min(limits)


@dataclass
class CachedState:
    """A state, and the newest chunk that it was made from."""

    state: Any
    file: str
    size: int = 0


class Cache:
    """The states that were used last, up to a number of bytes."""

    def __init__(self, limit: int | None = None):
        self._limit, self._size = default_limit() if limit is None else limit, 0
        self._entries: OrderedDict[Key, CachedState] = OrderedDict()
        self._lock = threading.RLock()  # queries of one driver run side by side

    def take(self, key: Key) -> CachedState | None:
        """Take an entry out, to be changed."""
        with self._lock:
            entry = self._entries.pop(key, None)
            self._size -= entry.size if entry else 0
            return entry

    def put(self, key: Key, entry: CachedState, stored: int) -> None:
        """Put an entry in; those used longest ago make room for it."""
        with self._lock:
            self.take(key)
            entry.size = stored * OVERHEAD
            self._entries[key] = entry
            self._size += entry.size
            while self._size > self._limit and self._entries:
                self._size -= self._entries.popitem(last=False)[1].size

    def __len__(self) -> int:
        return len(self._entries)


STATES = Cache()
