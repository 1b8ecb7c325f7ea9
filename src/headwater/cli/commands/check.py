"""``headwater check``: whether a pipeline is right, before anything of it runs."""

from __future__ import annotations

import click

import headwater
from headwater import Pipeline
from headwater.cli.failure import tell
from headwater.cli.formats.tables import print_ndjson, print_table
from headwater.cli.options import format_option, verbose_option
from headwater.cli.screens.progress import waiting


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
    pipeline = headwater.load(file)
    check_parts(pipeline)
    with waiting(f'checking pipeline "{pipeline.name}"'):
        nodes = headwater.check(pipeline, brief=True)
    if form == "ndjson":
        print_ndjson(each.to_dict() for each in nodes)
    else:
        print_table(
            ("node", "kind", "key", "columns"),
            [(each.node, each.kind, ", ".join(each.key) or None, each.columns) for each in nodes],
        )


def check_parts(pipeline: Pipeline) -> None:
    """Tell everything that keeps the parts from fitting together, without waiting for Spark."""
    problems = pipeline.problems()
    for problem in problems:
        tell(problem)
    if problems:
        raise click.exceptions.Exit(1)
