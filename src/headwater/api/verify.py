"""Whether views and streams are what a batch over the same input gives, or hold the rows that they should."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from headwater.api import session
from headwater.api.background import apart
from headwater.api.status import status
from headwater.api.subject import SparkOptions, Subject, checked
from headwater.engine.home.view_locations import views_of
from headwater.engine.proof.compare import compare_by_key
from headwater.engine.proof.verdict import NOT_BEGUN, Verdict
from headwater.errors import UsageError, nearest
from headwater.pipeline.declaration import Declaration
from headwater.pipeline.node import Node
from headwater.pipeline.pipeline import Pipeline


def verify(
    pipeline: Subject,
    nodes: str | Sequence[str] = (),
    *,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> list[Verdict]:
    """Compute views and streams again from the log as a batch, and compare them with what is stored.

    Each is computed up to where it has got, and compared row by row; ``nodes`` names some, otherwise all are.
    Nothing is changed, and the pipeline may run meanwhile. What the proof does not cover says so in
    ``unproved``, and so does a node that has not processed anything yet. Spark is started for it.
    """
    found = checked(pipeline)
    chosen = verifiable(found, (nodes,) if isinstance(nodes, str) else nodes)
    ready = _begun(found)
    names = [node.name for node in chosen if node.name in ready]
    where = SparkOptions(master, settings or {})
    proved = {each.node: each for each in (apart(partial(_verdicts, found, names, where)) if names else ())}
    return [
        replace(proved.get(node.name) or Verdict(node.name, unproved=NOT_BEGUN), kind=node.kind)
        for node in chosen
    ]


def verifiable(pipeline: Pipeline, names: Sequence[str] = ()) -> list[Node]:
    """Return the nodes to verify: those that are named, or all that can be."""
    for each in (pipeline[name] for name in names):
        if not each.verifiable:
            raise UsageError(f"{each.title} cannot be verified", detail="views and streams can be")
    return [node for node in pipeline.order() if node.verifiable and (not names or node.name in names)]


def compare(pipeline: Subject, view: str, rows: Iterable[Mapping[str, Any]]) -> Verdict:
    """Compare what a view holds with the rows that it should hold, by its key.

    Rows have the key and as many other columns as are to be compared. It needs no Spark.
    """
    found, wanted = checked(pipeline), list(rows)
    node = found[view]
    with views_of(found) as views:
        stored = views[view].scan().to_table()
    if wanted:
        stored = stored.select(_common(node, wanted, stored.column_names))
    return replace(compare_by_key(node, wanted, stored.to_pylist(), stored.schema), kind=node.kind)


def _common(node: Declaration, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> list[str]:
    """Return the columns that rows have; refuse those that a comparison would leave out in silence."""
    names = set(rows[0])
    if any(set(row) != names for row in rows):
        raise UsageError(f"not all rows to compare with {node.title} have the same columns")
    for name in sorted(names - set(columns)):
        raise UsageError(f'{node.title} has no column "{name}"', hint=nearest(name, columns))
    for name in set(node.key) - names:
        raise UsageError(f'the rows to compare with {node.title} lack "{name}" of its key')
    return [name for name in columns if name in names]


def _begun(pipeline: Pipeline) -> set[str]:
    """Return the names of the nodes that have done a batch."""
    return {each.node for each in status(pipeline) if each.batch is not None}


def _verdicts(pipeline: Pipeline, names: Sequence[str], where: SparkOptions) -> list[Verdict]:
    spark = session.start_aside(where.master, where.settings)
    from headwater.engine.inspection import inspect_pipeline
    from headwater.engine.proof.verify import verify

    with inspect_pipeline(pipeline, spark) as inspection:
        return [verify(inspection, name) for name in names]
