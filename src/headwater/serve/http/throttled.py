"""Values that cost something to find out, found out no more often than they are worth.

Invariant: of those who ask at the same time one works and the others take what was found before, or wait for
it if nothing was; no more than a twentieth of the time goes into one value.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")
SHARE = 20.0
"""How many times as long as it took a value is used again."""


@dataclass(frozen=True)
class _Known:
    value: Any
    until: float


class ThrottledValues:
    """Keeps the values of some keys, and asks anew when they are old."""

    def __init__(self, least: float = 0.5, most: int = 1_000):
        """``least`` is how many seconds a value is used at least, ``most`` how many keys are kept."""
        self._least, self._most = least, most
        self._known: dict[Hashable, _Known] = {}
        self._locks: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, ask: Callable[[], T]) -> T:
        """Return the value of a key, asked for anew if it is old."""
        with self._lock:
            known, lock = self._known.get(key), self._locks.setdefault(key, threading.Lock())
        if known is not None and (time.monotonic() < known.until or lock.locked()):
            return known.value  # type: ignore[no-any-return]
        with lock:
            known = self._known.get(key)
            if known is not None and time.monotonic() < known.until:  # others have asked meanwhile
                return known.value  # type: ignore[no-any-return]
            began = time.monotonic()
            value = ask()
            now = time.monotonic()
            self._keep(key, _Known(value, now + max(self._least, SHARE * (now - began))))
            return value

    def peek(self, key: Hashable) -> Any:
        """Return the value of a key, however old, without asking; None if none is known."""
        known = self._known.get(key)
        return None if known is None else known.value

    def _keep(self, key: Hashable, known: _Known) -> None:
        with self._lock:
            self._known.pop(key, None)
            while len(self._known) >= self._most:
                oldest = next(iter(self._known))
                del self._known[oldest]
                self._locks.pop(oldest, None)
            self._known[key] = known
