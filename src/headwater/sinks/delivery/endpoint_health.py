"""Whether an endpoint is well: how much is sent to it at once, and when it is given up.

One message that fails says little: others go on. Where nothing arrives any more, one attempt at a time is
made, with growing waits between (a circuit breaker). Invariant: an endpoint is dead only if nothing has
arrived there for as long as it may take, though it was tried.
"""

from __future__ import annotations

from headwater.backoff import Backoff

FAILURES = 8
"""As many failures in a row, of whichever messages, stop all but one attempt at a time."""


class EndpointHealth:
    """What is known of an endpoint since this process began to send."""

    def __init__(self, backoff: Backoff, retry_timeout: float):
        self._backoff, self._retry_timeout = backoff, retry_timeout
        self.reset()

    def reset(self) -> None:
        """Begin anew, as with an endpoint of which nothing is known."""
        self._failures, self._quiet_until = 0, 0.0
        self._failing_since: float | None = None

    def room(self, now: float, most: int, under_way: int) -> int:
        """Return how many more messages may be sent now."""
        if now < self._quiet_until:
            return 0
        return max(0, (1 if self._failures >= FAILURES else most) - under_way)

    def delivered(self) -> None:
        """Note that a message has arrived."""
        self._failures, self._failing_since = 0, None

    def failed(self, now: float, after: float | None) -> None:
        """Note that one has not, and for how long the endpoint wants to be left alone, if it says so."""
        self._failures += 1
        self._failing_since = now if self._failing_since is None else self._failing_since
        wait = after or 0.0
        if self._failures >= FAILURES:
            wait = max(wait, self._backoff.seconds(self._failures - FAILURES + 1))
        self._quiet_until = max(self._quiet_until, now + wait)

    def is_dead(self, now: float) -> bool:
        """Tell whether nothing has arrived for too long."""
        return self._failing_since is not None and now - self._failing_since >= self._retry_timeout

    @property
    def quiet_until(self) -> float:
        """Until when nothing is sent."""
        return self._quiet_until
