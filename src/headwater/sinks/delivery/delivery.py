"""What is sent, what becomes of an attempt, and who makes and sends it: the words of this folder.

Invariant: a delivery's id and body never change, however often it is sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from headwater.values.fitting import Fitted

Kind = Literal["insert", "update", "delete"]
"""What a row does to its key: it is new, replaces an earlier one, or is gone."""


@dataclass(frozen=True)
class OutgoingDelivery:
    """One message that waits to be delivered."""

    seq: int
    """Its number in the outbox, in the order of commits."""
    id: str
    """By which a receiver knows a repeat."""
    body: bytes
    ordering_key: str | None = None
    """Deliveries of one ordering key arrive one after the other; None waits for nobody."""
    attempts: int = 0
    """How often it was tried in vain."""
    failed_since: float | None = None
    recipient: str | None = None
    """For whom it is, of several who get the same."""


@dataclass(frozen=True)
class Outcome:
    """What became of an attempt to send."""

    result: Literal["delivered", "retry", "refused", "gone"]
    """``refused``: trying again mends nothing; ``gone``: the endpoint wants nothing any more."""
    reason: str = ""
    after: float | None = None
    """How many seconds the endpoint wants to be left alone for."""


DELIVERED = Outcome("delivered")


class Composer(Protocol):
    """Makes messages of rows."""

    def payloads(self, fitted: Fitted) -> list[bytes | None]:
        """Return what each row says; None for one of which nothing is sent."""

    def body(self, kind: Kind, payload: bytes, made: float) -> bytes:
        """Return the body of the message of a row, which was made at a time."""

    def summary(self, bodies: list[bytes], count: int) -> bytes:
        """Return the body of one message in place of so many, of which these are the first."""


class Transport(Protocol):
    """Sends messages, from several threads at once."""

    def send(self, delivery: OutgoingDelivery) -> Outcome:
        """Try once to deliver; what may go wrong outside is an outcome, not an exception."""

    def recipients(self) -> list[str] | None:
        """Return for whom a message is that names nobody, each to get it alone; None for one endpoint."""

    def close(self) -> None:
        """Release connections."""
