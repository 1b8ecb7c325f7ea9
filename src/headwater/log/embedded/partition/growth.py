"""Where the partitions of a topic ended when others were added: from there on a key may be in another one.

Who reads a topic in the order of its keys has to read all partitions up to there first. Invariant: a record
that was appended before partitions were added lies before the ends that were noted then, and one that was
placed among the new ones behind them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import orjson

from headwater import durable
from headwater.errors import DamagedLog

FILE = "growth.json"


class Growth(NamedTuple):
    """How many partitions a topic had, and where each ended, when it got more."""

    partitions: int
    ends: tuple[int, ...]

    def unread(self, cursors: Mapping[int, int]) -> bool:
        """Tell whether something before the ends has yet to be read, by the next offset of each partition."""
        return any(cursors.get(number, 0) < end for number, end in enumerate(self.ends))


def note(directory: Path, ends: list[int]) -> None:
    """Note where the partitions of a topic end, before others are declared.

    What was noted before and came to nothing, by a crash in between, is replaced.
    """
    kept = [each for each in _read(directory) if each.partitions < len(ends)]
    noted = [list(each) for each in (*kept, Growth(len(ends), tuple(ends)))]
    durable.write(directory / FILE, orjson.dumps(noted) + b"\n")


def growths(directory: Path, partitions: int) -> list[Growth]:
    """Return how a topic has come to its partitions, the first time first."""
    return [each for each in _read(directory) if each.partitions < partitions]


def _read(directory: Path) -> list[Growth]:
    path = directory / FILE
    try:
        return [Growth(count, tuple(map(int, ends))) for count, ends in orjson.loads(path.read_bytes())]
    except FileNotFoundError:
        return []
    except (ValueError, TypeError) as error:
        raise DamagedLog(
            f'where partitions of topic "{directory.name}" were added cannot be read',
            detail=f'"{path}": {error}',
            hint="restore the file from a copy; the records themselves are untouched",
            resume=None,
        ) from None
