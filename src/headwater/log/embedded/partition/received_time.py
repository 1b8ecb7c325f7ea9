"""When a record is received: a time that several clocks agree on, for one of them may be wrong.

Witnesses are the clock of this process, that of the file system now and when the partition was
last published, and the newest time of receipt in the log. Invariant: nothing is stamped, and
nothing removed for its age, by a clock that the others show to be wrong; and a time of receipt
never goes back within a partition, except from one that was ahead of all clocks.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import NamedTuple

from headwater import durations
from headwater.errors import ClockWrong

SKEW = 3_600_000_000
"""How far clocks may differ that are taken to agree."""
AHEAD = 366 * 86_400_000_000
"""How long a partition may have been left alone before a clock that says so is doubted."""
FRESH = 1_000_000
"""For how long after clocks agreed a time needs no second look."""
_log = logging.getLogger("headwater")


class Clocks(NamedTuple):
    """What the witnesses say, in microseconds."""

    now: int
    """The clock of this process."""
    files: int
    """The file system's clock at the same time."""
    published: int
    """The file system's clock when the partition was last published."""
    received: int
    """The newest time of receipt in the partition."""

    def agreed(self, directory: Path) -> int:
        """Return what time it is, or refuse to say where the clocks differ absurdly."""
        if abs(self.now - self.files) > SKEW:
            detail = f"this process has {_said(self.now)}, the file system {_said(self.files)}"
            raise _wrong(directory, detail, "set the clock, and try again")
        if self.now - max(self.published, self.received) > AHEAD:
            latest = max(self.published, self.received)
            detail = f"it is {_said(self.now)} by the clock, and the log was last written at {_said(latest)}"
            head = directory / "head"
            raise _wrong(directory, detail, f'set the clock; if it is right, run `touch "{head}"` to say so')
        return self.now

    def received_time(self, directory: Path) -> int:
        """Return when what is appended now is received."""
        now = self.agreed(directory)
        if self.received - now <= SKEW:
            return max(now, self.received)
        if self.published - now <= SKEW:
            _log.warning(
                'records in "%s" were stamped %s by a clock that was ahead; times go on from %s',
                directory, _said(self.received), _said(now),
            )  # fmt: skip
            return now
        _log.warning(
            'the clock is behind the records in "%s": it says %s, they say %s, which new ones get too; '
            'set the clock, or, if it is right, run `touch "%s"`',
            directory, _said(now), _said(self.received), directory / "head",
        )  # fmt: skip
        return self.received


def read_clocks(now: int, files: tuple[int, int], received: int) -> Clocks:
    """Ask the witnesses, by a partition's open files, lock and head, and its newest time of receipt."""
    lock, head = files
    return Clocks(now, files_clock(lock), _changed(head), received)


def files_clock(lock: int) -> int:
    """Return the time by the file system's clock."""
    os.utime(lock)
    return _changed(lock)


def _changed(file: int) -> int:
    return os.fstat(file).st_mtime_ns // 1000


def _said(micros: int) -> str:
    return durations.instant(micros).isoformat(sep=" ", timespec="seconds")


def _wrong(directory: Path, detail: str, hint: str) -> ClockWrong:
    return ClockWrong(
        f'clocks disagree about topic "{directory.parent.name}", partition {directory.name}',
        detail=f"{detail}; nothing was stored or removed",
        hint=hint,
    )
