"""What Spark has written down of a query: which offsets a micro-batch ends at.

Spark stores them before it runs the batch, so they are there when results are committed, and the
same when the batch is repeated.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from headwater.engine.reading import NEVER, Offsets
from headwater.log.position import Position


@dataclass(frozen=True)
class Reached:
    """How far a micro-batch has brought a query."""

    positions: tuple[Position, ...]
    clocks: tuple[int, ...]
    """The clock of each input that tells the time."""
    watermark: int
    """The clock that the batch's operators saw."""

    @property
    def clock(self) -> int | None:
        """The clock that the next batch's operators will see, or None if no input tells the time."""
        return min(self.clocks) if self.clocks else None


def reached(checkpoint: Path, batch: int) -> Reached:
    """Return what is written of a batch."""
    _, about, *sources = (checkpoint / "offsets" / str(batch)).read_text().splitlines()
    told = [json.loads(source) for source in sources]
    found = [(each["topic"], Offsets.from_json(each), each["timed"]) for each in told]
    return Reached(
        tuple(Position(topic, offsets.offsets) for topic, offsets, _ in found),
        tuple(offsets.clock for _, offsets, timed in found if timed),
        (json.loads(about)["batchWatermarkMs"] or 0) * 1000 or NEVER,
    )


def last_batch(checkpoint: Path) -> int:
    """Return the number of the last batch that was planned, or -1."""
    return _last(checkpoint / "offsets")


def last_done(checkpoint: Path) -> int:
    """Return the number of the last batch that was done, or -1."""
    return _last(checkpoint / "commits")


def _last(folder: Path) -> int:
    return max((int(path.name) for path in folder.glob("[0-9]*") if path.name.isdigit()), default=-1)
