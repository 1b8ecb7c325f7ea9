"""What can be chosen for a webhook that has a server of its own.

Invariant: it names where a secret is, and never holds one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True)
class WebhookSettings:
    """Who signs, where it listens, and how long ids are remembered."""

    secret: str
    """``env:NAME`` or ``file:PATH``."""
    scheme: str = "standard"
    """``standard`` (Standard Webhooks), ``github`` or ``stripe``."""
    listen: str = "127.0.0.1:8780"
    window: str | timedelta = "5 minutes"
    """How far a signed time may be from now."""
    remember: str | timedelta = "7 days"
    """How long a delivery id is remembered, so that a repeat makes no second event."""
