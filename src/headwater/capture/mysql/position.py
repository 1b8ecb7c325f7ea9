"""Where a stream is: which transactions it has passed, and where that is in the files of one server.

As text ``GTIDS@SERVER/FILE:OFFSET``, or ``GTIDS`` alone. The GTIDs are what a stream begins at. What is
behind the ``@`` tells whether the server still has the history that it had: on a server that was made anew,
or restored and written to since, the same numbers mean other transactions, and stand elsewhere in its files.

Invariant: ``parse(str(position)) == position``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from headwater.capture.mysql import gtids as sets
from headwater.capture.mysql.gtids import Gtids
from headwater.errors import SourceRefused

_PLACE: Final = re.compile(r"(\d+)/([^/:@]+):(\d+)")


@dataclass(frozen=True)
class BinlogPlace:
    """A place between two events, in the files of a server."""

    server: int
    file: str
    offset: int

    def __str__(self) -> str:
        return f"{self.server}/{self.file}:{self.offset}"

    @property
    def order(self) -> tuple[int, int]:
        """What places of one server are compared by."""
        return file_number(self.file), self.offset


@dataclass(frozen=True)
class BinlogPosition:
    """How far a stream has come."""

    gtids: Gtids
    place: BinlogPlace | None = None

    def __str__(self) -> str:
        return str(self.gtids) if self.place is None else f"{self.gtids}@{self.place}"


def parse(text: str) -> BinlogPosition:
    """Read a position; refuse what is none."""
    numbers, marked, place = text.partition("@")
    found = _PLACE.fullmatch(place)
    try:
        gtids = sets.parse(numbers)
    except ValueError:
        raise _no_position(text) from None
    if marked and found is None:
        raise _no_position(text)
    return BinlogPosition(gtids, BinlogPlace(int(found[1]), found[2], int(found[3])) if found else None)


def file_number(file: str) -> int:
    """Return the number of a file of the binlog, by which files are in order."""
    number = file.rpartition(".")[2]
    return int(number) if number.isdecimal() else 0


def _no_position(text: str) -> SourceRefused:
    hint = "drop the capture and begin it anew, with a new snapshot"
    return SourceRefused(f'"{text:.60}" is no position in a binlog of MySQL', hint=hint)
