"""Whether a node can go on from where it stopped: its checkpoint, its sink and its query are compared.

Invariant: what passes here has every committed micro-batch, and none that comes next has been left out.
"""

from __future__ import annotations

from pathlib import Path

from headwater.engine.home import checkpoint, node_progress
from headwater.engine.home.node_progress import NodeProgress
from headwater.errors import PipelineError
from headwater.pipeline.node import Node


def check_checkpoint(node: Node, committed: int, path: Path) -> None:
    """Refuse to go on from a checkpoint that knows less than the sink: its batches would be left out."""
    if committed > checkpoint.last_batch(path):
        raise PipelineError(
            f"the checkpoint of {node.title} is older than its results",
            detail=f'batch {committed} is committed, and "{path}" does not know it',
            hint=f"restore the checkpoint; or {node.recompute_hint}",
            location=node.location,
        )


def check_query(node: Node, done: NodeProgress, folder: Path, upstreams: list[str]) -> None:
    """Refuse to go on where the nodes that share the query have gone on without this one."""
    if node_progress.has_missed(done, folder, upstreams):
        raise PipelineError(
            f"{node.title} has missed some of its input",
            detail="the pipeline has run without it, and the query that it shares has gone on",
            hint=node.recompute_hint,
            location=node.location,
        )


def check_sink(node: Node, loss: str | None) -> None:
    """Refuse to go on if a sink has lost what was committed: those batches never come again."""
    if loss is not None:
        raise PipelineError(
            f"{node.title} is older than its checkpoint",
            detail=f"{loss}: it was moved, emptied, or restored from a backup",
            hint=node.recompute_hint,
            location=node.location,
        )
