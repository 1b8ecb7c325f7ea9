"""How often a call is tried again, and what is told when it is given up."""

from __future__ import annotations

import httpx2

from headwater.backoff import Backoff
from headwater.errors import LogUnavailable

BACKOFF = Backoff(0.1, 5.0)


def given_up(outcome: httpx2.Response | httpx2.TransportError) -> httpx2.Response:
    """Return the last answer, a refusal; raise if there was none."""
    if isinstance(outcome, httpx2.Response):
        return outcome
    raise LogUnavailable(
        "the server cannot be reached",
        detail=str(outcome) or None,
        hint="see whether `headwater serve` runs, and at http or https",
    )
