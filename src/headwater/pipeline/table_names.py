"""Which tables, files and directories belong to which node of a pipeline, where nodes share a database.

A view in PostgreSQL has a table of its own name, one of its changes, and one for each version that is
being built. Invariant: no two nodes of a pipeline that passes write to the same table or directory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headwater.errors import PipelineError
from headwater.pipeline.node import Node
from headwater.pipeline.sink_target import TableName
from headwater.pipeline.source_line import errors_at


def problems(nodes: Sequence[Node], views: str | None) -> Iterator[PipelineError]:
    """Find names that a store refuses, and nodes that would write to one table; ``views`` is their store."""
    owners: dict[TableName, Node] = {}
    for node in nodes:
        wrong = _wrong_name(node, views)
        if wrong is not None:
            yield wrong
        written = node.table_names(views)
        clash = next((other for table in written for other in owners if table.overlaps(other)), None)
        if clash is not None:
            yield _shared(node, owners[clash], clash.name)
        for table in written:
            owners.setdefault(table, node)


def _wrong_name(node: Node, views: str | None) -> PipelineError | None:
    try:
        with errors_at(node.source_line):
            node.check_table_name(views)
    except PipelineError as error:
        return error
    return None


def _shared(node: Node, owner: Node, table: str) -> PipelineError:
    return PipelineError(
        f"{node.title} would write to what is {owner.title}'s",
        location=node.location,
        detail=f'both use "{table}"; the other is declared at {owner.location}',
        hint="give one of them another name, or another place",
    )
