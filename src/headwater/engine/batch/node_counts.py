"""What a node has done in this run, in numbers: for status, metrics and the screen.

Invariant: a micro-batch that is repeated is counted once.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from headwater.engine.home.checkpoint import InputProgress
from headwater.engine.stage.key_sample import sample_size

_SAMPLED_ROWS = 20_000


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
    held: dict[int, int] = field(default_factory=dict)
    """Bytes of each bucket's state that are in the memory of a process."""
    keys: dict[str, float] = field(default_factory=dict)
    """Of rows that were looked at lately, how many had each of the most frequent keys."""
    sampled: float = 0.0
    """How many rows these were."""
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
        self.held[note["bucket"]] = note["held"]
        self._note_keys(note["keys"], sample_size(note["rows"]))

    def _note_keys(self, keys: dict[str, int], sampled: int) -> None:
        """Take in a sample of keys; what was seen longer ago counts for less."""
        if not sampled:
            return
        self.sampled += sampled
        for text, count in keys.items():
            self.keys[text] = self.keys.get(text, 0.0) + count
        if self.sampled > _SAMPLED_ROWS:
            self.sampled /= 2
            halved = {text: count / 2 for text, count in self.keys.items()}
            self.keys = {text: count for text, count in halved.items() if count >= 1}

    def largest_keys(self, most: int = 3) -> tuple[tuple[str, float], ...]:
        """Return the most frequent keys, each with its share of the rows that were looked at."""
        often = sorted(dict(self.keys).items(), key=lambda each: -each[1])[:most]
        return tuple((text, round(count / self.sampled, 4)) for text, count in often)
