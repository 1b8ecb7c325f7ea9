"""Whether nodes are what a batch over the same input gives, or hold the rows that they should.

Views and streams are; so are sinks whose target can be read back. Captured tables are compared with their
databases.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from headwater.api import session
from headwater.api.background import run_in_thread
from headwater.api.captures import capture_name, captured_tables, tables_of
from headwater.api.status import status
from headwater.api.subject import SparkOptions, Subject, checked
from headwater.capture.opening import open_source
from headwater.capture.source_comparison import SourceComparison
from headwater.engine.home.view_locations import views_of
from headwater.engine.proof.compare import compare_by_key
from headwater.engine.proof.verdict import NOT_BEGUN, Verdict
from headwater.errors import UsageError, nearest
from headwater.log.open import open as open_log
from headwater.names import listed
from headwater.pipeline.declaration import Declaration
from headwater.pipeline.node import Node, SinkNode
from headwater.pipeline.pipeline import Pipeline


def verify(
    pipeline: Subject,
    nodes: str | Sequence[str] = (),
    *,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> list[Verdict]:
    """Compute nodes again from the log as a batch, and compare them with what is stored.

    Views, streams, and sinks whose target can be read back. Each is computed up to where it has got, and
    compared row by row; ``nodes`` names some, otherwise all are. Nothing is changed, and the pipeline may run
    meanwhile. What the proof does not cover says so in ``unproved``, and so does a node that has not
    processed anything yet. Spark is started for it.
    """
    found = checked(pipeline)
    chosen = verifiable(found, listed(nodes))
    ready = _begun(found)
    names = [node.name for node in chosen if node.name in ready]
    where = SparkOptions(master, settings or {})
    proved = {
        each.node: each for each in (run_in_thread(partial(_verdicts, found, names, where)) if names else ())
    }
    return [
        replace(proved.get(node.name) or Verdict(node.name, unproved=NOT_BEGUN), kind=node.kind)
        for node in chosen
    ]


def verify_source(
    pipeline: Subject,
    nodes: str | Sequence[str] = (),
    *,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> list[Verdict]:
    """Compare captured tables with the tables of their databases, and followers with their topics.

    A follower is a sink whose target can be read back: it is compared with what its function makes of its
    topics, up to where it has got. ``nodes`` names some tables and sinks, otherwise all are. Nothing is
    changed, and pipeline and databases may go on meanwhile; a capture that does not run has to have caught
    up. Rows that were set aside because they do not fit are not compared. Spark is started where there are
    followers.
    """
    found, names = checked(pipeline), listed(nodes)
    sinks = [node.name for node in followers(found, names)]
    compared = [*_table_verdicts(found, names)]
    return compared + (verify(found, sinks, master=master, settings=settings) if sinks else [])


def followers(pipeline: Pipeline, names: Sequence[str] = ()) -> list[Node]:
    """Return the sinks to compare: those that are named, or all that can be; refuse what cannot be."""
    captured = {table.name for capture in pipeline.captures for table in tables_of(pipeline, capture)}
    for each in (pipeline[name] for name in names):
        if each.name not in captured and not (isinstance(each, SinkNode) and each.verifiable):
            raise UsageError(
                f"{each.title} cannot be compared with its source",
                detail="captured tables can be, and sinks whose target can be read back",
            )
    sinks = [node for node in pipeline.order() if isinstance(node, SinkNode) and node.verifiable]
    return [node for node in sinks if not names or node.name in names]


def _table_verdicts(pipeline: Pipeline, names: Sequence[str]) -> Iterator[Verdict]:
    with open_log(pipeline.log) as log:
        for capture in pipeline.captures:
            tables = zip(tables_of(pipeline, capture), captured_tables(pipeline, capture), strict=True)
            chosen = [each for each in tables if not names or each[0].name in names]
            if chosen:
                with open_source(capture.url, capture_name(pipeline, capture)) as source:
                    comparison = SourceComparison(source, log, capture_name(pipeline, capture))
                    for table, captured in chosen:
                        yield replace(comparison.verdict(table, captured), kind=table.kind)


def verifiable(pipeline: Pipeline, names: Sequence[str] = ()) -> list[Node]:
    """Return the nodes to verify: those that are named, or all that can be."""
    for each in (pipeline[name] for name in names):
        if not each.verifiable:
            raise UsageError(
                f"{each.title} cannot be verified",
                detail="views and streams can be, and sinks whose target can be read back",
            )
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
