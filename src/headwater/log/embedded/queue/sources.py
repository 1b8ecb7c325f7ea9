"""What a queue reads: its topic, and what its group tries again, if there is such a topic.

Invariant: the topic is the one over which the queue was made; one that was deleted and made again is refused.
"""

from __future__ import annotations

from headwater.log.embedded.catalog import StoredTopic
from headwater.log.embedded.partition.growth import Growth, growths
from headwater.log.embedded.partition_stats import PartitionStats
from headwater.log.embedded.queue.store import RETRY, TOPIC
from headwater.log.embedded.storage import Storage
from headwater.log.embedded.stream import RecordReader
from headwater.log.position import Extent
from headwater.topic import Topic


class QueueSources:
    """Finds and opens the topics of a queue."""

    def __init__(self, storage: Storage, topic: Topic, retry: str):
        self._storage, self._topic, self._retry = storage, topic, retry
        self._retry_path = storage.root / "topics" / retry / "topic.json"
        self._growths: tuple[int, list[Growth]] | None = None

    @property
    def directory(self) -> str:
        """The log's directory."""
        return str(self._storage.root)

    def topic(self) -> StoredTopic:
        """Return the topic as it is declared now."""
        return self._storage.current(self._topic)

    def stored(self) -> dict[int, StoredTopic]:
        """Return what is read, by source."""
        found = {TOPIC: self.topic()}
        if self._retry_path.exists():  # looked for at every turn: another process may have made it
            found[RETRY] = self._storage.catalog.get(self._retry)
        return found

    def growths(self) -> list[Growth]:
        """Return how the topic has come to its partitions; looked up when their number changes."""
        stored = self.topic()
        if self._growths is None or self._growths[0] != stored.topic.partitions:
            count = stored.topic.partitions
            self._growths = (count, growths(stored.directory, count))
        return self._growths[1]

    def name(self, source: int) -> str:
        """Return the name of a source's topic."""
        return self._topic.name if source == TOPIC else self._retry

    def reader(self, stored: StoredTopic, number: int, offset: int) -> RecordReader:
        """Open a partition for reading, with metadata."""
        return self._storage.reader(stored, number, offset, meta=True)

    def stats(self, stored: StoredTopic, number: int) -> PartitionStats:
        """Look at a partition as it is now."""
        return self._storage.with_retry(stored, lambda: PartitionStats(self._storage, stored, number))

    def extents(self) -> dict[tuple[int, int], Extent]:
        """Return what each partition holds, by source and number."""
        return {
            (source, number): self.stats(stored, number).extent()
            for source, stored in self.stored().items()
            for number in range(stored.topic.partitions)
        }
