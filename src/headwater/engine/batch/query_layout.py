"""Which nodes share a query, and how one is detached from it.

Nodes that start together share one: those whose results go to the pipeline's own store and log, and
those whose results go to the same database. A checkpoint says where a query is in its inputs and
nothing of its nodes, whose states are their own; so a node may be detached with a copy of it, and goes
on from there by itself, or is moved to another that is at the same offsets
(``headwater.engine.home.checkpoint_merge``).

A node's checkpoint is a directory of its own, or a link to that of the query it shares. Invariant:
who reads a node's checkpoint need not know which of the two it is.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from headwater import durable
from headwater.engine.home import checkpoint
from headwater.engine.home.versions import Version
from headwater.engine.plan.node_plan import NodePlan
from headwater.pipeline.pipeline import Pipeline


def assigned_checkpoint(pipeline: Pipeline, plan: NodePlan, version: Version, *, share: bool) -> Path:
    """Return the checkpoint of the query that a node is to run in; nothing is made."""
    own = version.home / "checkpoint"
    alone = not share or not plan.node.shares_query or version.number > 1
    if own.exists() or alone:
        return own.resolve()
    return _open_query(pipeline, plan)


def attach(version: Version, query: Path) -> None:
    """Make a query's checkpoint that of a node, unless the node has one."""
    own = version.home / "checkpoint"
    if own.exists() or own.resolve() == query:
        return
    durable.make(own.parent)
    durable.make(query)
    own.symlink_to(os.path.relpath(query.resolve(), own.parent.resolve()), target_is_directory=True)
    durable.sync(own.parent)


def detach(version: Version) -> Path:
    """Give a node a copy of the checkpoint that it shares; its query must not go on meanwhile."""
    alone = version.home / "alone"
    with durable.drafting_tree(alone) as draft:
        shutil.copytree((version.home / "checkpoint").resolve(), draft)
        checkpoint.assign_new_id(draft)
        shutil.rmtree(alone, ignore_errors=True)  # of a detaching that a crash broke off
    _link(version, Path(alone.name))
    return alone.resolve()


def move(version: Version, query: Path) -> None:
    """Move a node to another query, which is at the same offsets; where the node began stays known."""
    checkpoint.write_start(version.home, checkpoint.read_node_start(version.home))
    _link(version, Path(os.path.relpath(query.resolve(), version.home.resolve())))
    shutil.rmtree(version.home / "alone", ignore_errors=True)  # where it was, if it was detached


def may_move(version: Version) -> bool:
    """Tell whether a node shares a query, or did: one that began in a checkpoint of its own stays there."""
    return (version.home / "checkpoint").is_symlink()


def next_checkpoint(pipeline: Pipeline, group: str) -> Path:
    """Return where to write the checkpoint of another query for nodes of a sharing group."""
    number = 1
    while (path := _folder(pipeline) / f"{group}-{number}").exists():
        number += 1
    return path


def _link(version: Version, to: Path) -> None:
    link = version.home / "checkpoint.draft"
    link.unlink(missing_ok=True)
    link.symlink_to(to, target_is_directory=True)
    durable.replace(link, version.home / "checkpoint")


def drop_unused(pipeline: Pipeline) -> None:
    """Remove the checkpoints that no node shares any more, not even one that is not declared now."""
    used = {link.resolve() for link in (pipeline.home / "nodes").glob("*/v*/checkpoint")}
    for path in _folder(pipeline).glob("*"):
        if path not in used:
            shutil.rmtree(path, ignore_errors=True)


def _open_query(pipeline: Pipeline, plan: NodePlan) -> Path:
    """Return the first query for nodes of this kind that has not begun yet."""
    group, number = sharing_group(pipeline, plan), 1
    while checkpoint.read_start(path := _folder(pipeline) / f"{group}-{number}"):
        number += 1
    return path


def sharing_group(pipeline: Pipeline, plan: NodePlan) -> str:
    """Return which nodes a node may share a query with, by the store of its results: a directory's name."""
    store = plan.node.store_url(pipeline.views)
    if store is None:
        return "own"
    return hashlib.sha256(store.rpartition("@")[2].encode()).hexdigest()[:8]  # no secret, not even hashed


def _folder(pipeline: Pipeline) -> Path:
    return pipeline.home.resolve() / "queries"
