"""A request to send events, on its way to the thread that appends, and what comes of it."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import pyarrow as pa

from headwater.errors import HeadwaterError
from headwater.record import META
from headwater.serve.topics.body import Body


@dataclass(frozen=True)
class Sent:
    """Where the events of a request are."""

    position: str
    rows: int
    repeated: bool = False
    """Whether an earlier request with the same key has sent them."""


@dataclass(frozen=True, eq=False)
class Submission:
    """Events to be appended, all or none."""

    body: Body
    key: str | None
    """The request's ``Idempotency-Key``."""
    sent: datetime | None
    """When it was sent, by the device's clock."""
    occurred: datetime | None
    """When its events happened, by the device's clock."""
    outcome: asyncio.Future[Sent]

    @cached_property
    def digest(self) -> bytes:
        """What tells the request from another one with the same key."""
        parts = (self.body.media_type, str(self.occurred), "")
        return hashlib.sha256("\n".join(parts).encode() + self.body.data).digest()

    def timed(self, table: pa.Table) -> pa.Table:
        """Return rows with the times that the request gives all of them."""
        for name, time in (("_sent", self.sent), ("_occurred", self.occurred)):
            if time is not None:
                column = pa.repeat(pa.scalar(time, META[name]), table.num_rows)
                table = table.append_column(pa.field(name, META[name]), column)
        return table

    def resolve(self, outcome: Sent | HeadwaterError) -> None:
        """Give the outcome to who waits for it; call it in the thread of the event loop."""
        if self.outcome.done():  # who waited was cancelled
            return
        if isinstance(outcome, HeadwaterError):
            self.outcome.set_exception(outcome)
        else:
            self.outcome.set_result(outcome)
