"""What a capture measures of itself while it works, and when somebody is to be warned."""

from __future__ import annotations

import logging
import time

from headwater import durations
from headwater.engine.figures.status import RowRate

_log = logging.getLogger("headwater")


class Gauges:
    """The figures of one capture; they are set by its thread, and read by any."""

    def __init__(self) -> None:
        self.ended = False
        self.rate = self.snapshot_rate = 0.0
        self.committed: int | None = None
        self.delay: float | None = None
        self.retained: int | None = None
        self.alert: str | None = None
        self._rates = RowRate(), RowRate()

    def sample(self, changes: int, snapshot_rows: int) -> None:
        """Take in how many changes, and rows of snapshots, were written by now."""
        now = time.monotonic()
        self.rate, self.snapshot_rate = (
            rate.over(count, now) for rate, count in zip(self._rates, (changes, snapshot_rows), strict=True)
        )

    def wrote(self, committed: int) -> None:
        """Take in that changes were written, the last of which was committed at a time."""
        self.committed, self.delay = committed, max(0.0, (durations.now() - committed) / 1e6)

    def keep(self, title: str, retained: int | None, most: int | None) -> None:
        """Take in how many bytes a database keeps; warn once whenever it is more than it should be."""
        self.retained = retained
        if retained is None or most is None or retained <= most:
            self.alert = None
            return
        warned = self.alert is not None
        self.alert = f"{title} keeps {retained:,} bytes for this capture, more than {most:,}"
        if not warned:
            _log.warning("%s: see why it is behind, or whether the disk has room", self.alert)
