"""What a node has done in this run, in numbers: for status, metrics and the screen.

Invariant: a micro-batch that is repeated is counted once.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from headwater.engine.home.checkpoint import InputProgress


@dataclass
class NodeCounts:
    """What a node has done so far, in this run."""

    batches: int = 0
    rows: int = 0
    out: int = 0
    late: int = 0
    duplicates: int = 0
    states: dict[int, int] = field(default_factory=dict)
    """Bytes of each bucket's state."""
    hits: int = 0
    loads: int = 0
    read: int = 0
    seconds: float = 0.0
    reached: InputProgress | None = None
    at: float = field(default_factory=time.time)

    def note(self, note: dict[str, Any]) -> None:
        """Take in what a bucket has noted of its step."""
        self.rows += note["rows"]
        self.late += note["late"]
        self.duplicates += note["duplicates"]
        self.hits += note["hits"]
        self.loads += note["loads"]
        self.read += note["read"]
        self.states[note["bucket"]] = note["state"]
