"""What a node has done so far, by its own account: beside its checkpoint, which others may share.

A query goes on without a node that is not declared for a while. Invariant: a node goes on only from
where it was, its clock never goes back, and it is the same in a micro-batch that is repeated.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headwater.engine import checkpoint, notes
from headwater.engine.checkpoint import Reached

_COMMITTED = "committed"
KEPT = 20
"""Micro-batches whose clocks are kept: as many as ``headwater.engine.session`` keeps the offsets of."""


@dataclass(frozen=True)
class Milestone:
    """The last micro-batch that a node has committed, and where it ended in each of its inputs."""

    batch: int = -1
    positions: Mapping[str, str] = field(default_factory=dict)
    clocks: dict[int, int] = field(default_factory=dict)
    """The clock after each of the last micro-batches that had something for the node."""

    @property
    def last(self) -> int | None:
        """The clock after the last of them, if any is known."""
        return next(reversed(self.clocks.values()), None)

    def clock(self, batch: int, reached: Reached) -> int | None:
        """Return a node's clock after a micro-batch; None if no input tells the time.

        It is what the inputs tell, unless it was later before: one that was silent may be behind the others.
        """
        told = reached.clock
        before = [time for number, time in self.clocks.items() if number <= batch]
        return None if told is None else max([told, *before[-1:]])

    def after(self, batch: int, reached: Reached) -> Milestone:
        """Return what it is after a micro-batch."""
        clock = self.clock(batch, reached)
        clocks = self.clocks if clock is None else {**self.clocks, batch: clock}
        return Milestone(batch, _positions(reached), dict(list(clocks.items())[-KEPT:]))


def write(home: Path, made: Milestone) -> None:
    """Note what a version of a node has committed, in its home."""
    notes.write(home / _COMMITTED, vars(made))


def read(home: Path) -> Milestone:
    """Return what was noted last; nothing done, if nothing was."""
    told = notes.read(home / _COMMITTED)
    if told is None:
        return Milestone()
    return Milestone(told["batch"], told["positions"], {int(n): time for n, time in told["clocks"].items()})


def has_missed(last: Milestone, folder: Path, upstreams: Collection[str]) -> bool:
    """Tell whether the query of a checkpoint has gone on, since then, without the node."""
    done = checkpoint.last_done(folder)
    if done < 0 or last.batch >= done:
        return False
    begun = checkpoint.reached(folder, -1).of(upstreams)
    before = last.positions if last.batch >= 0 else _positions(begun)
    return before != _positions(checkpoint.reached(folder, done).of(upstreams))


def _positions(reached: Reached) -> dict[str, str]:
    return {name: str(each.position) for name, each in reached.inputs.items()}
