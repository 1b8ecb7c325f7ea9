"""Decoded states of buckets, kept in a worker's memory from one micro-batch to the next.

A state changes in place, so an entry is worth something only while what is stored is exactly what
it was made from. That is told by the random token of the newest chunk: a task that was retried,
or run twice at a time, has stored another one.

Invariant: an entry is out of the cache while it is being changed, and comes back only with the
token of what was stored.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

LIMIT = int(os.environ.get("HEADWATER_CACHE_BYTES", 512 << 20))
OVERHEAD = 4
"""How many times larger a decoded state is than its chunks; a guess on the safe side."""

Key = tuple[str, int]


@dataclass
class Entry:
    """A state, and the newest chunk that it was made from."""

    state: Any
    token: str
    size: int = 0


class Cache:
    """The states that were used last, up to a number of bytes."""

    def __init__(self, limit: int = LIMIT):
        self._limit, self._size = limit, 0
        self._entries: OrderedDict[Key, Entry] = OrderedDict()
        self._lock = threading.RLock()  # queries of one driver run side by side

    def take(self, key: Key) -> Entry | None:
        """Take an entry out, to be changed."""
        with self._lock:
            entry = self._entries.pop(key, None)
            self._size -= entry.size if entry else 0
            return entry

    def put(self, key: Key, entry: Entry, stored: int) -> None:
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
