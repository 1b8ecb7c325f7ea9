"""Sets of GTIDs, the numbers of transactions: of MariaDB the last one of each domain, of MySQL all by server.

MariaDB numbers the transactions of a domain in the order of its binlog, so that the last one tells them all:
``0-1-270`` is domain 0, written by server 1, number 270. MySQL numbers them by the server that wrote them
first, in any order: ``3e11fa47-…:1-5:7``.

Invariant: ``parse(str(gtids))`` is the same set; a set that covers another has all transactions of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

_DOMAIN: Final = re.compile(r"(\d+)-(\d+)-(\d+)")
_SERVER: Final = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})((?::\d+(?:-\d+)?)+)")
Intervals: TypeAlias = tuple[tuple[int, int], ...]
"""First and last numbers, in order, with gaps between them."""


@dataclass(frozen=True)
class DomainGtids:
    """Transactions of MariaDB."""

    last: tuple[tuple[int, int, int], ...] = ()
    """Domain, server and number of the last transaction of each domain, in the order of the domains."""

    def __str__(self) -> str:
        return ",".join("-".join(map(str, each)) for each in self.last)

    def with_gtid(self, gtid: str) -> DomainGtids:
        """Return the set with one more transaction, the last of its domain."""
        added = _domain_gtid(gtid)
        others = [each for each in self.last if each[0] != added[0]]
        return DomainGtids(tuple(sorted([*others, added])))

    def covers(self, other: Gtids) -> bool:
        """Tell whether it has everything that another one has."""
        if not isinstance(other, DomainGtids):
            return not str(other)
        reached = {domain: number for domain, _, number in self.last}
        return all(reached.get(domain, -1) >= number for domain, _, number in other.last)


@dataclass(frozen=True)
class ServerGtids:
    """Transactions of MySQL."""

    intervals: tuple[tuple[str, Intervals], ...] = ()
    """By server, in the order of their names."""

    def __str__(self) -> str:
        return ",".join(f"{server}:{_text(intervals)}" for server, intervals in self.intervals)

    def with_gtid(self, gtid: str) -> ServerGtids:
        """Return the set with one more transaction."""
        return _server_gtids([str(self), gtid] if self.intervals else [gtid])

    def covers(self, other: Gtids) -> bool:
        """Tell whether it has everything that another one has."""
        if not isinstance(other, ServerGtids):
            return not str(other)
        mine = dict(self.intervals)
        return all(
            any(low <= first and last <= high for low, high in mine.get(server, ()))
            for server, intervals in other.intervals
            for first, last in intervals
        )


Gtids: TypeAlias = DomainGtids | ServerGtids


def parse(text: str) -> Gtids:
    """Read a set; one that is empty covers nothing and is covered by any. Raises ``ValueError``."""
    plain = re.sub(r"\s", "", text)
    if ":" in plain:
        return _server_gtids([plain])
    return DomainGtids(tuple(sorted(_domain_gtid(each) for each in plain.split(",") if each)))


def _domain_gtid(text: str) -> tuple[int, int, int]:
    found = _DOMAIN.fullmatch(text)
    if found is None:
        raise ValueError(f"no GTID: {text}")
    return int(found[1]), int(found[2]), int(found[3])


def _server_gtids(texts: Iterable[str]) -> ServerGtids:
    numbers: dict[str, list[tuple[int, int]]] = {}
    for text in ",".join(texts).lower().split(","):
        found = _SERVER.fullmatch(text)
        if found is None:
            raise ValueError(f"no GTIDs: {text}")
        for interval in found[2].removeprefix(":").split(":"):
            first, _, last = interval.partition("-")
            numbers.setdefault(found[1], []).append((int(first), int(last or first)))
    return ServerGtids(tuple((server, _joined(numbers[server])) for server in sorted(numbers)))


def _joined(intervals: list[tuple[int, int]]) -> Intervals:
    """Return intervals in order, where those that touch are one."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(intervals):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(joined[-1][1], last)
        else:
            joined.append((first, last))
    return tuple(joined)


def _text(intervals: Intervals) -> str:
    return ":".join(str(first) if first == last else f"{first}-{last}" for first, last in intervals)
