"""What a node has done so far, by its own account: beside its checkpoint, which others may share.

A query goes on without a node that is not declared for a while. Invariant: a node goes on only from
where it was.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from headwater.engine import checkpoint
from headwater.engine.checkpoint import Reached


@dataclass(frozen=True)
class Milestone:
    """The last micro-batch that a node has committed, and where it ended in each of its inputs."""

    batch: int
    positions: dict[str, str]


def write(path: Path, batch: int, reached: Reached) -> None:
    """Note that a node has committed a micro-batch."""
    told = {"batch": batch, "positions": _positions(reached)}
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(told))
    os.replace(draft, path)


def read(path: Path) -> Milestone | None:
    """Return what was noted last, if anything was."""
    return Milestone(**json.loads(path.read_text())) if path.exists() else None


def has_missed(last: Milestone | None, folder: Path, upstreams: Collection[str]) -> bool:
    """Tell whether the query of a checkpoint has gone on, since then, without the node."""
    done = checkpoint.last_done(folder)
    if done < 0 or (last is not None and last.batch >= done):
        return False
    before = last.positions if last else _positions(checkpoint.reached(folder, -1).of(upstreams))
    return before != _positions(checkpoint.reached(folder, done).of(upstreams))


def _positions(reached: Reached) -> dict[str, str]:
    return {name: str(each.position) for name, each in reached.inputs.items()}
