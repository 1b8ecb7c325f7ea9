"""Positions in the write-ahead log: as text ``X/Y``, and as numbers, which can be compared.

A position that is stored for long also names the server it is of, ``X/Y@SYSTEM``, by the identifier that
PostgreSQL gives a database cluster when it is made: on another server the same number means something else.

Invariant: no record of the log ends between a position and what ``record_end`` makes of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from headwater.errors import UsageError

_PAGE, _SHORT_HEADER, _LONG_HEADER = 8192, 24, 40


def number(position: str) -> int:
    """Return a position as a number."""
    high, _, low = position.partition("@")[0].partition("/")
    try:
        return (int(high, 16) << 32) | int(low, 16)
    except ValueError:
        raise UsageError(
            f'"{position}" is no position in the log of PostgreSQL', hint='such as "0/16B3748"'
        ) from None


def text(position: int) -> str:
    """Return a number as PostgreSQL writes positions."""
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"


def texts(positions: Iterable[int]) -> list[str]:
    """Return many numbers as PostgreSQL writes positions."""
    return [f"{each >> 32:X}/{each & 0xFFFFFFFF:X}" for each in positions]


def system(position: str) -> str | None:
    """Return the identifier of the server that a position is of, if it names one."""
    return position.partition("@")[2] or None


def of_system(position: int, identifier: str) -> str:
    """Return a position as it is stored, with the server that it is of."""
    return f"{text(position)}@{identifier}"


def record_end(insert: int) -> int:
    """Return where the last record ends when the next will be inserted at a position.

    That is behind the header of a page when the page before is full; what has been decoded is told without
    it.
    """
    within = insert % _PAGE
    return insert - within if within in (_SHORT_HEADER, _LONG_HEADER) else insert
