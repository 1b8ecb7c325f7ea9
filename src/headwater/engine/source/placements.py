"""By how many partitions the micro-batches of a query of plain Spark were placed, kept beside their topic.

A log leaves out what a partition has by its number, so a micro-batch that comes again must go to the
partitions it went to before, though the topic may have got more since; and Spark gives a writer no place
of its own to note that. A placement says from which micro-batch on rows are placed by so many partitions.
It is durable before a row is. Partitions are never taken away, so of two placements the one by more of them
is the later one, in whichever order two drivers of a query have noted them.
Invariant: a micro-batch of which the topic has a row is placed as that row was, or is refused.
"""

from __future__ import annotations

from headwater.errors import HeadwaterError
from headwater.log import Log

SUFFIX = ".placements"
_SCHEMA = "query STRING, topic STRING, partitions INT, since BIGINT"
_KEY = ("query", "topic", "partitions")


class Placements:
    """The placements of one query in one topic."""

    def __init__(self, log: Log, topic: str, query: str):
        self._log, self._topic, self._query = log, topic, query
        self._id = log.topic(topic).id or ""
        log.create_topic(topic + SUFFIX, _SCHEMA, key=_KEY, cleanup="compact")

    def note(self, number: int, partitions: int) -> None:
        """Make durable that rows are placed by so many partitions, from a micro-batch on."""
        if partitions in self._since():
            return
        row = {"query": self._query, "topic": self._id, "partitions": partitions, "since": number}
        with self._log.producer(self._topic + SUFFIX) as producer:
            producer.send(row)

    def partitions_of(self, number: int) -> int:
        """Return by how many partitions a micro-batch was placed."""
        known = [partitions for partitions, since in self._since().items() if since <= number]
        if not known:
            raise HeadwaterError(
                f'it is not known how micro-batch {number} was placed in topic "{self._topic}"',
                detail=f'a part of it is there, and topic "{self._topic}{SUFFIX}" has nothing of its query',
                hint="start the query anew with another checkpoint; what it has written stays",
            )
        return max(known)

    def _since(self) -> dict[int, int]:
        """Return from which micro-batch on rows were placed by a number of partitions."""
        rows = [row for batch in self._log.read(self._topic + SUFFIX) for row in batch.to_pylist()]
        own = (row for row in rows if (row["query"], row["topic"]) == (self._query, self._id))
        return {row["partitions"]: row["since"] for row in own}
