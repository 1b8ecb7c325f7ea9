"""What a target is that delivers: what its messages say, how they are sent, and how many may wait.

Invariant: nothing is opened or connected to before a runner begins; a declaration shows no secret.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from headwater.sinks.delivery.delivery import Composer, Transport
from headwater.sinks.delivery.rate_limit import MessageRate
from headwater.sinks.delivery.worker import DeliveryPolicy
from headwater.values.fitting import TargetSchema

LIMIT = 100_000
"""As many deliveries wait in an outbox before its node does."""


@dataclass(frozen=True)
class DeliveryDeclaration:
    """A target that delivers, before it is known where its outbox is."""

    what: str
    """As it is called in messages: ``webhook "https://shop.example/hook"``."""
    shape: Callable[[pa.Schema], TargetSchema] = field(repr=False)
    """Checks the columns of the rows."""
    composer: Callable[[TargetSchema], Composer] = field(repr=False)
    transport: Callable[[Path], Transport] = field(repr=False)
    """Returns what sends, given the home of the pipeline."""
    rate_limit: MessageRate | None = None
    policy: DeliveryPolicy = field(default_factory=DeliveryPolicy)
    limit: int = LIMIT


@dataclass(frozen=True)
class OutboxPlace:
    """Where the outbox of a node is, in the home of its pipeline."""

    home: Path
    node: str

    @property
    def file(self) -> Path:
        """The file of the outbox; versions of the node share it."""
        return self.home / "nodes" / self.node / "outbox.db"
