"""``headwater check``: whether a pipeline is right, before anything of it runs."""

from __future__ import annotations

import click

import headwater
from headwater import Pipeline, SourcePreview
from headwater.cli.failure import tell
from headwater.cli.formats.cell_text import cells
from headwater.cli.formats.tables import print_ndjson, print_table
from headwater.cli.options import format_option, verbose_option
from headwater.cli.screens.progress import waiting
from headwater.errors import PipelineError


@click.command()
@click.argument("file")
@click.option("--sample", is_flag=True, help="Show the newest records of each source as nodes will see them.")
@format_option("table", "ndjson", default="table")
@verbose_option
def check(file: str, sample: bool, form: str) -> None:
    """Check the pipeline in FILE, and print the columns of its nodes.

    Every function is called once, over no rows. Nothing is written, and no log is opened, unless to sample
    its records.

    \b
    Examples:
      headwater check shop.py
      headwater check shop.py --sample
    """
    pipeline = headwater.load(file)
    check_parts(pipeline)
    readable = _show_samples(pipeline, form) if sample else True
    with waiting(f'checking pipeline "{pipeline.name}"'):
        nodes = headwater.check(pipeline, brief=True)
    if form == "ndjson":
        print_ndjson(each.to_dict() for each in nodes)
    else:
        print_table(
            ("node", "kind", "key", "columns"),
            [(each.node, each.kind, ", ".join(each.key) or None, each.columns) for each in nodes],
        )
    if not readable:
        raise click.exceptions.Exit(1)


def _show_samples(pipeline: Pipeline, form: str) -> bool:
    """Print a few records of each source; tell whether all of them can be read."""
    previews = headwater.preview(pipeline)
    if form == "ndjson":
        print_ndjson(each.to_dict() for each in previews)
    for each in previews:
        if form == "table":
            _show_sample(each)
        for reason in each.unreadable:
            tell(PipelineError(f"{pipeline[each.source].title}: {reason}"))
    return not any(each.unreadable for each in previews)


def _show_sample(preview: SourcePreview) -> None:
    what = f'source "{preview.source}", topic "{preview.topic}"'
    if not preview.exists:
        click.echo(f"{what}: not there yet; it is made when the pipeline runs\n")
    elif not preview.records.num_rows:
        click.echo(f"{what}: no record to show\n")
    else:
        click.echo(f"{what}: the newest {preview.records.num_rows}")
        whole = preview.records.combine_chunks()
        columns = [cells(whole[field.name].chunk(0), field) for field in whole.schema]
        print_table(whole.schema.names, list(zip(*columns, strict=True)))
        click.echo()


def check_parts(pipeline: Pipeline) -> None:
    """Tell everything that keeps the parts from fitting together, without waiting for Spark."""
    problems = pipeline.problems()
    for problem in problems:
        tell(problem)
    if problems:
        raise click.exceptions.Exit(1)
