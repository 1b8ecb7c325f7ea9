"""The sink of a node that delivers: a commit is a transaction of the outbox, and sending is a worker's.

Invariant: a commit waits for no endpoint. While the version is being built beside the published one, nothing
is sent.
"""

from __future__ import annotations

import pyarrow as pa

from headwater.errors import UsageError
from headwater.sinks import crash
from headwater.sinks.delivery.declaration import DeliveryDeclaration, OutboxPlace
from headwater.sinks.delivery.outbox import BatchAppender, DeliveryOutbox, OutboxLease
from headwater.sinks.delivery.queue import DeliveryQueue
from headwater.sinks.delivery.rate_limit import RateLimiter
from headwater.sinks.delivery.worker import DeliveryWorker
from headwater.sinks.sink import Batch, NumberedSink
from headwater.values.fitting import fit


class DeliverySink(NumberedSink):
    """Puts a message for each row into an outbox, from which it is sent until it has arrived.

    Of several rows of one key each is a message, in their order. A batch that comes again adds nothing; a
    runner that was replaced is fenced, and sends nothing more. With ``sends=False`` messages only wait.
    """

    def __init__(
        self,
        place: OutboxPlace,
        schema: pa.Schema,
        declaration: DeliveryDeclaration,
        *,
        version: int = 1,
        sends: bool = True,
    ):
        self._shape = declaration.shape(schema)
        self._place, self._declaration, self._version, self._sends = place, declaration, version, sends
        self._composer = declaration.composer(self._shape)
        self._outbox: DeliveryOutbox | None = None
        self._lease: OutboxLease | None = None
        self._worker: DeliveryWorker | None = None

    def begin(self) -> int:
        """Take over from any other runner, and begin to send what waits."""
        self._stop()
        if self._outbox is None:
            self._outbox = DeliveryOutbox(self._place.file, self._declaration.what)
        self._lease, reached = self._outbox.begin(self._version)
        crash.point("outbox: begun")
        self._last = reached.batch
        if self._sends and self._lease.sends:
            self._worker = self._start(self._outbox, self._lease)
        return self._last

    def commit(self, batch: Batch) -> bool:
        """Add a batch's messages to the outbox; return False if they were added before."""
        if self._outbox is None or self._lease is None:
            raise UsageError(f"sink of {self._declaration.what} has not begun", hint="call begin() first")
        fitted = fit(batch.rows, self._shape)
        held, limit = self._declaration.rate_limit is not None, self._declaration.limit
        appender = BatchAppender(self._outbox, self._shape, self._composer, limit, held)
        if not appender.append(batch, fitted, self._lease):
            return False
        self._last = batch.number
        crash.point("outbox: committed")
        if self._worker is not None:
            self._worker.wake()
        return True

    def close(self) -> None:
        """Send what is due, for a moment, and close the outbox."""
        self._stop()
        if self._outbox is not None:
            self._outbox.close()
            self._outbox = None

    def _start(self, outbox: DeliveryOutbox, lease: OutboxLease) -> DeliveryWorker:
        declared = self._declaration
        limiter = None if declared.rate_limit is None else RateLimiter(declared.rate_limit, self._composer)
        transport = declared.transport(self._place.home)
        return DeliveryWorker(DeliveryQueue(outbox, lease), transport, declared.policy, limiter)

    def _stop(self) -> None:
        if self._worker is not None:
            self._worker.close()
            self._worker = None
