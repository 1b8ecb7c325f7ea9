"""What has become of the rows that a node took in, since it began: the bar that always adds up.

It is noted with the node's progress, so that it counts what is committed, once, through any number of
restarts. Invariant: rows = used + late + duplicates + dead, and none of them is below zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headwater.values.json_ready import JsonReady


@dataclass(frozen=True)
class Accounting(JsonReady):
    """Rows that a node has taken in, and what became of them.

    >>> Accounting(rows=10, late=2, dead=1).used
    7
    """

    rows: int = 0
    late: int = 0
    duplicates: int = 0
    dead: int = 0
    """Rows that were set aside because code fails on them; results that were are not among them."""
    out: int = 0
    """Rows that came out; an operator may make one of many, or many of one."""

    @property
    def used(self) -> int:
        """Rows that were neither late nor a duplicate nor set aside."""
        return self.rows - self.late - self.duplicates - self.dead

    def plus(self, more: Accounting) -> Accounting:
        """Return this and what a micro-batch did.

        What is set aside in one micro-batch may have come in one before. If that was not counted, by a
        release that did not, it is taken in now.
        """
        late, duplicates = self.late + more.late, self.duplicates + more.duplicates
        dead = self.dead + more.dead
        rows = max(self.rows + more.rows, late + duplicates + dead)
        return Accounting(rows, late, duplicates, dead, self.out + more.out)

    def facts(self) -> dict[str, Any]:
        """Return its fields, and how many rows were used."""
        return {**super().facts(), "used": self.used}

    @classmethod
    def from_json(cls, stored: Mapping[str, int]) -> Accounting:
        """Read what is stored of it; nothing, where nothing was."""
        return cls(**stored)


NOTHING = Accounting()
"""Nothing taken in."""
