"""The share consumers of one queue: as many as it takes that a slow message holds no partition up.

A share consumer receives no more until all that it received is answered, and the broker gives it partitions
that others may not have. So while one waits for an answer and the others find nothing, another one is added;
where all are answered for a while, one is enough. Invariant: each that may receive is polled in its turn, for
it may be the only one that a partition is given to.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from headwater.log.kafka.queue.member import ShareMember

MOST_MEMBERS = 16
ADD_SECONDS = 0.5
"""How long after the last one another is added: the broker has to share the partitions out first."""
CALM_SECONDS = 10.0
"""How long all must have been answered before those that are not needed leave."""


class ShareMembers:
    """Share consumers of one group, in this process."""

    def __init__(self, join: Callable[[], ShareMember]):
        self._join = join
        self._lock = threading.Lock()
        self._members: list[ShareMember] = []
        """Those that were polled longest ago first."""
        self._polling: set[ShareMember] = set()
        self._added = self._busy = time.monotonic()
        self._in_vain = False

    def __len__(self) -> int:
        return max(1, len(self._members))

    def next(self) -> ShareMember | None:
        """Return one that may receive, for the caller alone; None if all have messages to be answered."""
        with self._lock:
            idle = [each for each in self._members if each not in self._polling]
            free = [each for each in idle if each.free]
            if len(free) < len(self._members):
                self._busy = time.monotonic()
            chosen = self._added_member(free) or next(iter(free), None)
            self._retire(free)
            if chosen is not None:
                self._members.remove(chosen)
                self._members.append(chosen)
                self._polling.add(chosen)
            return chosen

    def polled(self, member: ShareMember, found: bool) -> None:
        """Note whether one has received something."""
        self._in_vain = not found

    def release(self, member: ShareMember) -> None:
        """Take one back."""
        with self._lock:
            self._polling.discard(member)

    def close(self) -> None:
        """Give back what was not answered, and leave the group."""
        with self._lock:
            members, self._members = self._members, []
        for member in members:
            member.close()

    def _added_member(self, free: list[ShareMember]) -> ShareMember | None:
        """Return a new one, if those that are there cannot receive what may wait."""
        there = len(self._members)
        blocked = len(free) + len(self._polling) < there
        due = time.monotonic() - self._added > ADD_SECONDS
        if there and not (blocked and there < MOST_MEMBERS and (not free or (self._in_vain and due))):
            return None
        self._added = time.monotonic()
        self._members.append(self._join())
        return self._members[-1]

    def _retire(self, free: list[ShareMember]) -> None:
        if len(free) > 1 and time.monotonic() - self._busy > CALM_SECONDS:
            for member in free[1:]:
                self._members.remove(member)
                member.close()
