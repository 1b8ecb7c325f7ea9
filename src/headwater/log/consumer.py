"""What every consumer does: one member of a consumer group, embedded or Kafka.

Invariant: what is delivered and not committed is delivered again, and only the owner of a partition
commits for it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import pyarrow as pa

from headwater.closing import Closing
from headwater.log.position import Position


class Consumer(Closing):
    """A member of a consumer group, iterated by batches.

    Made by ``Log.consumer``. A batch holds records of one partition, in order. Nothing is committed until
    ``commit`` is called; after a crash, what was not committed is delivered again (at least once). A member
    that has not polled for five minutes is taken for dead, and others take its partitions over.

    >>> import headwater
    >>> log = headwater.open("memory:")
    >>> _ = log.create_topic("orders", "id BIGINT")
    >>> with log.producer("orders") as producer:
    ...     producer.send({"id": 1})
    >>> with log.consumer("orders", group="billing") as consumer:
    ...     batch = consumer.poll(timeout=1.0)
    ...     print(batch.num_rows, consumer.assignment(), consumer.position().brief)
    ...     consumer.commit()
    1 (0,) orders:0=1
    """

    @abstractmethod
    def poll(self, timeout: float | None = None) -> pa.RecordBatch | None:
        """Return the next batch, or None if none has come in time.

        - ``timeout=None``: how many seconds to wait; for ever if None.
        """

    @abstractmethod
    def commit(self, position: Position | None = None) -> None:
        """Commit everything that ``poll`` has returned, or only up to a position.

        - ``position=None``: how far; everything if None.

        Raises ``Fenced`` if a partition has been lost, and commits nothing then.
        """

    @abstractmethod
    def assignment(self) -> tuple[int, ...]:
        """Return the partitions this member owns now."""

    @abstractmethod
    def position(self) -> Position:
        """Return the offsets after the last batch of each partition this member owns."""

    @abstractmethod
    def close(self) -> None:
        """Leave the group, so that others take over at once. A ``with`` block does it at its end.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("orders", "id BIGINT")
        >>> log.consumer("orders", group="billing").close()
        """

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while True:
            batch = self.poll()
            if batch is not None:
                yield batch
