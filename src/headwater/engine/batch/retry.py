"""When a query that has failed is retried, after a backoff, and when it is given up.

Each failure in a row doubles the backoff. Invariant: a log or a target that is away is waited for, however
long; what waiting does not mend is given up after some attempts without a micro-batch in between.
"""

from __future__ import annotations

import time

from headwater.backoff import Backoff
from headwater.errors import Fenced, HeadwaterError, InputLost, is_transient

BACKOFF_SECONDS = 1.0
MAX_BACKOFF_SECONDS = 60.0
MAX_ATTEMPTS = 6
"""Failures in a row that waiting does not mend, after which a query counts as broken."""


class Retry:
    """The failures of one query, and when it may start again."""

    def __init__(self) -> None:
        self.error: HeadwaterError | None = None
        """Why it stopped last; None once it goes on."""
        self.failures = 0
        """In a row, without a micro-batch in between."""
        self._permanent_failures = 0
        """Those of them that waiting does not mend."""
        self._retry_at = 0.0
        """When it may start again, by the monotonic clock."""
        self._done = 0
        """Micro-batches that were done when it failed last."""

    def back_off(self, error: HeadwaterError, done: int) -> None:
        """Take in a failure, after so many micro-batches of this run, and wait longer than before."""
        if self.has_progressed(done):
            self.failures = self._permanent_failures = 0
        self.failures += 1
        self._permanent_failures += not is_transient(error)
        self._done, self.error = done, error
        wait = Backoff(BACKOFF_SECONDS, MAX_BACKOFF_SECONDS, jitter=0.0).seconds(self.failures)
        self._retry_at = time.monotonic() + wait

    def clear(self) -> None:
        """Take in that it goes on."""
        self.error, self._retry_at = None, 0.0

    def has_progressed(self, done: int) -> bool:
        """Tell whether a query that has done so many micro-batches has done one since it failed last."""
        return done > self._done

    @property
    def is_due(self) -> bool:
        """Whether it may start again now."""
        return not self.is_given_up and time.monotonic() >= self._retry_at

    @property
    def is_given_up(self) -> bool:
        """Whether it is not retried any more."""
        if self.error is None or isinstance(self.error, Fenced | InputLost):
            return self.error is not None
        return self._permanent_failures >= MAX_ATTEMPTS and not is_transient(self.error)
