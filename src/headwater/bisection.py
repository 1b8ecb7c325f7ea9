"""Bisects many rows to find those on which something fails that is done with all at once.

Invariant: indices are yielded in their order, and rows are attempted in theirs: an attempt that succeeds
is never repeated, and nothing behind an index is attempted until the next one is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

Reason = TypeVar("Reason")


def failing(
    count: int, attempt: Callable[[int, int], Reason | None], start: int = 0
) -> Iterator[tuple[int, Reason]]:
    """Yield each index that fails alone, and why; ``attempt`` returns why a range fails, None if it does not.

    >>> list(failing(8, lambda start, end: "six" if start <= 6 < end else None))
    [(6, 'six')]
    """
    reason = attempt(start, start + count) if count else None
    if reason is None:
        return
    if count == 1:
        yield start, reason
        return
    half = count // 2
    yield from failing(half, attempt, start)
    yield from failing(count - half, attempt, start + half)
