"""Which tables, files and directories belong to which node of a pipeline, where nodes share a place.

A view in PostgreSQL has a table of its own name, one of its changes, and one for each version that is
being built. Invariant: no two nodes of a pipeline that passes write to the same table or directory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from headwater.errors import PipelineError
from headwater.pipeline.declaring import told_at
from headwater.pipeline.node import Node, SourceLine
from headwater.pipeline.targets import SinkTarget, database
from headwater.stores import limits

Claim = tuple[str, str]
"""A place, and the name of a table there."""
_VERSION = re.compile(r"(.+)@\d+(?:_changes)?")


def problems(nodes: Sequence[Node], views: str | None) -> Iterator[PipelineError]:
    """Find names that a store refuses, and nodes that would write to one table; ``views`` is their store."""
    owners: dict[Claim, Node] = {}
    for node in nodes:
        wrong = _wrong_name(node, views)
        if wrong is not None:
            yield wrong
        clash = next((claim for claim in _claims(node, views) if claim in owners), None)
        if clash is not None:
            yield _shared(node, owners[clash], clash[1])
        owners.update({claim: node for claim in _claims(node, views) if claim not in owners})


def _claims(node: Node, views: str | None) -> list[Claim]:
    store = node.store or views
    if node.kind == "view" and store is not None:
        return [(database(store), name) for name in (node.name, node.name + limits.CHANGES)]
    if not isinstance(node.target, SinkTarget) or node.target.place is None:
        return []
    versions = [found[1] for name in node.target.tables if (found := _VERSION.fullmatch(name))]
    return [(node.target.place, name) for name in (*node.target.tables, *versions)]


def _wrong_name(node: Node, views: str | None) -> PipelineError | None:
    try:
        with told_at(SourceLine(node.file, node.line)):
            if node.kind == "view" and (node.store or views) is not None:
                limits.check_view_name(node.name)
    except PipelineError as error:
        return error
    return None


def _shared(node: Node, owner: Node, table: str) -> PipelineError:
    return PipelineError(
        f"{node.title} would write to what is {owner.title}'s",
        place=node.place,
        detail=f'both use "{table}"; the other is declared at {owner.place}',
        hint="give one of them another name, or another place",
    )
