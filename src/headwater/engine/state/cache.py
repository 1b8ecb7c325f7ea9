"""States of buckets, kept in a process's memory from one micro-batch to the next, up to a limit.

A state changes in place, so an entry is worth something only while what is stored is exactly what
it was made from. That is known by the random name under which it was saved: a task that was retried,
or run twice at a time, has saved it under another one.

Invariant: an entry is out of the cache while it is being changed, and comes back only with the
name of what was stored; one whose name is in no manifest counts for nothing.
"""

from __future__ import annotations

import os
import re
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwater.errors import UsageError

VARIABLE = "HEADWATER_MEMORY"
MIN_BYTES = 256 << 20
_CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where a container's memory limit can be read, by the version of cgroups."""
Key = tuple[str, int]


def default_limit() -> int:
    """Return how many bytes of states a process may hold: its part of a quarter of the memory.

    There is a worker for each core, and the driver. ``HEADWATER_MEMORY`` says it instead, as ``512MB``.
    """
    limit = os.environ.get(VARIABLE)
    if limit is not None:
        return _limit(limit)
    return max(MIN_BYTES, memory_bytes() // 4 // ((os.cpu_count() or 1) + 1))


def _limit(text: str) -> int:
    found = re.fullmatch(r"(\d+) ?([kmgt]?)i?b?", text.strip(), re.IGNORECASE)
    if found is None:
        raise UsageError(f"{VARIABLE} is no size: {text!r:.40}", hint="as 512MB, 2GB, or a number of bytes")
    return int(found[1]) << 10 * " kmgt".index(found[2].lower() or " ")


def memory_bytes() -> int:
    """Return the bytes of memory of this machine, or of the container."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in map(Path, _CONTAINER):
        if path.exists() and (limit := path.read_text().strip()).isdecimal():
            limits.append(int(limit))
    return min(limits)


@dataclass
class CachedState:
    """A state, and the name under which it was saved."""

    state: Any
    save: str
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

    @property
    def size(self) -> int:
        """The bytes that its states hold."""
        return self._size

    def put(self, key: Key, entry: CachedState, size: int) -> None:
        """Put an entry in that holds so many bytes; those used longest ago make room for it."""
        with self._lock:
            self.take(key)
            entry.size = size
            self._entries[key] = entry
            self._size += entry.size
            while self._size > self._limit and self._entries:
                self._size -= self._entries.popitem(last=False)[1].size

    def __len__(self) -> int:
        return len(self._entries)


STATES = Cache()
