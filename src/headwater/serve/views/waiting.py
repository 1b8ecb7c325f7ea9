"""Threads for those who wait for a store behind a network: as many as there are, and apart from all others.

A wait may take half a minute, and does nothing. Invariant: waits take no thread from those who read or send;
one for which there is none soon is refused, and may come again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from anyio import CapacityLimiter, fail_after
from anyio.lowlevel import RunVar
from anyio.to_thread import run_sync

from headwater.serve.http.problem import HttpProblem

T = TypeVar("T")
WAITS = 40
"""How many may wait at once."""
TURN_SECONDS = 5.0
"""How long to wait for one's turn to wait."""
_limiter: RunVar[CapacityLimiter] = RunVar("headwater_waits")


async def in_waiting_thread(work: Callable[[], T]) -> T:
    """Do what waits in a thread of its own; refuse it where too many do so for too long."""
    limiter, turn = _waits(), object()
    try:
        with fail_after(TURN_SECONDS):
            await limiter.acquire_on_behalf_of(turn)
    except TimeoutError:
        raise HttpProblem(
            503, "too many requests wait for views", hint="ask again in a moment", retry_after=1
        ) from None
    try:
        return await run_sync(work, limiter=CapacityLimiter(1))
    finally:
        limiter.release_on_behalf_of(turn)


def _waits() -> CapacityLimiter:
    """Return the limiter of the event loop that runs."""
    try:
        return _limiter.get()
    except LookupError:
        limiter = CapacityLimiter(WAITS)
        _limiter.set(limiter)
        return limiter
