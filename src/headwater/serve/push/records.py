"""Pages of a topic's records: by offset, time or key, a piece at a time.

Invariant: the pages of a topic, each asked for with the ``next`` of the one before, hold every record once,
in the order of its partition.
"""

from __future__ import annotations

from dataclasses import dataclass

from headwater.log import Log
from headwater.serve.push.feed import Offsets
from headwater.serve.push.filters import PushFilter
from headwater.serve.push.topic_feed import TopicFeed

DEFAULT_LIMIT, MOST = 100, 10_000
PAGE_BYTES = 8 << 20
"""With so many bytes a page ends, though it has fewer records than were asked for."""
LOOKED_AT = 200_000
"""How many records are looked at for one page; where a key is rare, a page may be empty and not the last."""


@dataclass(frozen=True)
class RecordPage:
    """Some records as JSON, and where the next page begins; None at the end."""

    records: tuple[bytes, ...]
    next: str | None

    def to_json(self) -> bytes:
        """Return it as JSON."""
        end = b"null" if self.next is None else b'"%s"' % self.next.encode()
        return b'{"records":[%s],"next":%s}' % (b",".join(self.records), end)


def record_page(log: Log, topic: str, start: str, filter: PushFilter, limit: int) -> RecordPage:
    """Return the records from a start on that a filter takes, at most so many, in about ``PAGE_BYTES``."""
    feed = TopicFeed(log, topic)
    offsets = _without_others(feed.resolve(start), feed.newest(), filter)
    records: list[bytes] = []
    looked_at = size = 0
    for chunk in feed.read(offsets, filter):
        looked_at += sum(chunk.offsets.values()) - sum(offsets.values())
        for item in chunk.items:
            data = item.data(filter)
            if data is not None:
                records.append(data)
                size += len(data)
                if len(records) == limit or size >= PAGE_BYTES:
                    return RecordPage(tuple(records), item.id)
        offsets = chunk.offsets
        if looked_at > LOOKED_AT:
            return RecordPage(tuple(records), feed.id(offsets))
    return RecordPage(tuple(records), None)


def _without_others(offsets: Offsets, ends: Offsets, filter: PushFilter) -> Offsets:
    """Return a position that leaves out the partitions that are not asked for."""
    if filter.partition is None:
        return offsets
    return {each: at if each == filter.partition else ends[each] for each, at in offsets.items()}
