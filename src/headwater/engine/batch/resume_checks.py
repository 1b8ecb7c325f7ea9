"""Whether a node can go on from where it stopped: checkpoint, sink, query and partitions are compared.

Invariant: what passes here has every committed micro-batch, and none that comes next has been left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from headwater.engine.home import checkpoint, node_progress
from headwater.engine.home.node_progress import NodeProgress
from headwater.errors import PipelineError
from headwater.log import Position
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


def check_partitions(node: Node, stands: Iterable[Position], now: Iterable[Position]) -> None:
    """Refuse to go on in topics with other partitions than a node has read, if it relies on their number."""
    if not node.code.fixed_partitions:
        return
    for was, there in zip(stands, now, strict=True):
        if was.offsets.keys() != there.offsets.keys():
            raise PipelineError(
                f'topic "{was.topic}" has another number of partitions than when {node.title} began',
                detail=f"it had {len(was.offsets)}, and has {len(there.offsets)} now: the rows of a key may "
                "lie in two of them, in no order; none was read of those that are new",
                hint="copy the rows to another topic, those of a key in their order, and read that one in a "
                "pipeline of another name; or make this pipeline and its topics anew",
                location=node.location,
            )
