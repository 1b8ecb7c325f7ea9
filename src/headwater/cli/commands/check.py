"""``headwater check``: whether a pipeline is right, before anything of it runs."""

from __future__ import annotations

from functools import partial

import click
import pyarrow as pa

from headwater.cli import spark
from headwater.cli.background import apart
from headwater.cli.failure import tell
from headwater.cli.formats.tables import print_ndjson, print_table
from headwater.cli.options import format_option, verbose_option
from headwater.cli.screens.progress import waiting
from headwater.pipeline.loading import load
from headwater.pipeline.pipeline import Pipeline
from headwater.schema import ddl


@click.command()
@click.argument("file")
@format_option("table", "ndjson", default="table")
@verbose_option
def check(file: str, form: str) -> None:
    """Check the pipeline in FILE, and print the columns of its nodes.

    Every function is called once, over no rows. No log is opened, and nothing is written.

    \b
    Example:
      headwater check shop.py
    """
    pipeline = load(file)
    check_parts(pipeline)
    with waiting(f'checking pipeline "{pipeline.name}"'):
        found = apart(partial(_schemas, pipeline))
    nodes = [(node, ddl(found[node.name])) for node in pipeline.order()]
    if form == "ndjson":
        print_ndjson({"node": n.name, "kind": n.kind, "key": list(n.key), "columns": c} for n, c in nodes)
    else:
        print_table(
            ("node", "kind", "key", "columns"),
            [(node.name, node.kind, ", ".join(node.key) or None, columns) for node, columns in nodes],
        )


def check_parts(pipeline: Pipeline) -> None:
    """Tell everything that keeps the parts from fitting together, without waiting for Spark."""
    problems = pipeline.problems()
    for problem in problems:
        tell(problem)
    if problems:
        raise click.exceptions.Exit(1)


def _schemas(pipeline: Pipeline) -> dict[str, pa.Schema]:
    session = spark.start_aside("local[1]", brief=True)
    from headwater.engine.plan.checking import check

    return check(pipeline, session)
