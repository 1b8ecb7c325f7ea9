"""When somebody should look at a queue: too many wait, or one has waited for too long."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from headwater.durations import interval, interval_text
from headwater.errors import UsageError
from headwater.log import QueueStatus


@dataclass(frozen=True)
class QueueAlert:
    """Thresholds of a queue.

    - ``depth=None``: how many messages may be there; any number if None.
    - ``age=None``: how old the oldest of them may be, ``"5 minutes"``; any age if None.

    >>> from datetime import timedelta
    >>> status = QueueStatus("emails", "mailers", 12, 0, 0, 0, timedelta(seconds=5), 0, 0, 1)
    >>> QueueAlert(depth=10, age="1 minute").reasons(status)
    ['12 messages wait, more than 10']
    """

    depth: int | None = None
    age: str | timedelta | None = None

    def __post_init__(self) -> None:
        if self.depth is not None and self.depth < 0:
            raise UsageError(f"an alert's depth is 0 or more, not {self.depth}")
        if self.age is not None:
            interval(self.age)

    def reasons(self, status: QueueStatus) -> list[str]:
        """Return what is the matter, in sentences; none if all is well."""
        found = []
        if self.depth is not None and status.depth is not None and status.depth > self.depth:
            found.append(f"{status.depth} messages wait, more than {self.depth}")
        if self.age is not None and status.oldest is not None and status.oldest > interval(self.age):
            waited = interval_text(timedelta(seconds=max(1, int(status.oldest.total_seconds()))))
            found.append(f"the oldest has waited {waited}, more than {interval_text(interval(self.age))}")
        return found
