"""``headwater rebuild`` and ``headwater reset``: a node computed anew, a view also from a position."""

from __future__ import annotations

from typing import Any

import click

import headwater
from headwater import Pipeline, Start
from headwater.api.rebuild import check_rebuildable, check_resettable
from headwater.cli import options
from headwater.cli.commands.check import check_parts
from headwater.cli.options import spark_options, verbose_option
from headwater.cli.screens.progress import waiting


@click.command()
@click.argument("file")
@click.argument("node")
@spark_options
@verbose_option
def rebuild(file: str, node: str, **where: Any) -> None:
    """Rebuild the view or sink NODE of the pipeline in FILE from the log.

    A new version is built beside the one that readers see, and replaces it when it has caught up. A
    pipeline that runs meanwhile goes on with the new version. Of a sink it is what its target holds.

    \b
    Example:
      headwater rebuild shop.py totals
    """
    pipeline = _loaded(file)
    check_rebuildable(pipeline, node)
    title = pipeline[node].title
    with waiting(f"rebuilding {title}"):
        headwater.rebuild(pipeline, node, **where)
    click.echo(f"rebuilt {title}")


@click.command()
@click.argument("file")
@click.argument("node")
@click.option(
    "--to",
    type=options.start,
    metavar="POSITION",
    required=True,
    help="earliest, latest, an offset or a time.",
)
@spark_options
@verbose_option
def reset(file: str, node: str, to: Start, **where: Any) -> None:
    """Empty the view NODE, and start it at another position.

    NODE is a view of the pipeline in FILE. It leaves out the records of its inputs before that position,
    and fills when the pipeline runs. A time is a time of receipt: "2026-01-02T03:04:05Z" or
    "10 minutes ago".

    \b
    Example:
      headwater reset shop.py totals --to "1 hour ago"
    """
    pipeline = _loaded(file)
    check_resettable(pipeline, node)
    with waiting(f'resetting view "{node}"'):
        headwater.reset(pipeline, node, to, **where)
    click.echo(f'reset view "{node}"; it fills when the pipeline runs')


def _loaded(file: str) -> Pipeline:
    pipeline = headwater.load(file)
    check_parts(pipeline)
    return pipeline
