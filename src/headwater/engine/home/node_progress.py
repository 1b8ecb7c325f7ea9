"""What a node has done so far, by its own account: in the checkpoint, which others may share.

A query goes on without a node that is not declared for a while. Invariant: a node goes on only from
where it was, its clock never goes back, and it is the same in a micro-batch that is repeated.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headwater.engine.home import checkpoint, notes
from headwater.engine.home.accounting import NOTHING, Accounting
from headwater.engine.home.checkpoint import InputProgress

_COMMITTED = "committed"
RETAINED = 20
"""Micro-batches whose clocks are retained: as many as ``headwater.engine.spark.session`` has Spark retain."""


@dataclass(frozen=True)
class NodeProgress:
    """The last micro-batch that a node has committed, and where it ended in each of its inputs."""

    batch: int = -1
    positions: Mapping[str, str] = field(default_factory=dict)
    clocks: dict[int, int] = field(default_factory=dict)
    """The clock after each of the last micro-batches that had something for the node."""
    receipt: str = ""
    """By which the sink tells, when it is begun again, whether it has lost something."""
    accounting: Accounting = NOTHING
    """What has become of the rows that it took in, in all its micro-batches."""

    @property
    def last_watermark(self) -> int | None:
        """The clock after the last of them, if any is known."""
        return next(reversed(self.clocks.values()), None)

    def watermark(self, batch: int, progress: InputProgress) -> int | None:
        """Return a node's clock after a micro-batch; None if no input tells the time.

        It is what the inputs tell, unless it was later before: one that was silent may be behind the others.
        """
        watermark = progress.watermark
        before = [time for number, time in self.clocks.items() if number <= batch]
        return None if watermark is None else max([watermark, *before[-1:]])

    def to_json(self) -> dict[str, Any]:
        """Return the form that is stored."""
        clocks = {str(number): time for number, time in self.clocks.items()}
        return {**vars(self), "clocks": clocks, "accounting": vars(self.accounting)}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> NodeProgress:
        """Read what ``to_json`` has written."""
        clocks = {int(number): time for number, time in stored["clocks"].items()}
        accounting = Accounting.from_json(stored.get("accounting", {}))  # not noted by earlier releases
        return cls(stored["batch"], stored["positions"], clocks, stored["receipt"], accounting)

    def after(self, batch: int, progress: InputProgress, taken: Accounting = NOTHING) -> NodeProgress:
        """Return what it is after a micro-batch, but for the receipt, which its sink will give."""
        watermark = self.watermark(batch, progress)
        clocks = self.clocks if watermark is None else {**self.clocks, batch: watermark}
        return NodeProgress(
            batch,
            _positions(progress),
            dict(list(clocks.items())[-RETAINED:]),
            self.receipt,
            self.accounting.plus(taken),
        )


def write(checkpoint: Path, done: Mapping[Path, NodeProgress]) -> None:
    """Note what the nodes of a query have committed, each by the home of its version; others keep theirs.

    One note for all: to make it durable costs the same, however many nodes there are.
    """
    path = checkpoint / _COMMITTED
    before = notes.read(path) or {}
    now = {**before, **{_key(home): progress.to_json() for home, progress in done.items()}}
    if now != before:
        notes.write(path, now)


def read(home: Path) -> NodeProgress:
    """Return what was noted last of a version of a node; nothing done, if nothing was."""
    stored = (notes.read(home / "checkpoint" / _COMMITTED) or {}).get(_key(home))
    return NodeProgress() if stored is None else NodeProgress.from_json(stored)


def _key(home: Path) -> str:
    """Return by what a version is known: its node's name, and its number."""
    return f"{home.parent.name}/{home.name}"


def has_missed(last: NodeProgress, folder: Path, upstreams: Collection[str]) -> bool:
    """Tell whether the query of a checkpoint has gone on, since then, without the node."""
    done = checkpoint.last_done(folder)
    if done < 0 or last.batch >= done:
        return False
    start = {
        name: str(at) for name, at in checkpoint.read_node_start(folder.parent).items() if name in upstreams
    }
    if len(start) < len(upstreams):  # it began without the node, and never reads what the node does
        return True
    before = last.positions if last.batch >= 0 else start
    return before != _positions(checkpoint.input_progress(folder, done).of(upstreams))


def _positions(progress: InputProgress) -> dict[str, str]:
    return {name: str(each.position) for name, each in progress.inputs.items()}
