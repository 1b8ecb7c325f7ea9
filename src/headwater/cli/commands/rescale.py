"""``headwater rescale``: a node's state spread over another number of buckets."""

from __future__ import annotations

from typing import Any

import click

import headwater
from headwater.api.rescale import check_rescalable
from headwater.cli.commands.check import check_parts
from headwater.cli.options import spark_options, verbose_option
from headwater.cli.screens.progress import counting


@click.command()
@click.argument("file")
@click.argument("node")
@click.argument("buckets", type=int, metavar="N")
@spark_options
@verbose_option
def rescale(file: str, node: str, buckets: int, **where: Any) -> None:
    """Spread the state of NODE over N buckets, from 1 to 256.

    NODE is a view, a stream or a sink with an operator, of the pipeline in FILE, which must not run
    meanwhile. Nothing is computed anew: what the node remembers is written once more, and its results stay
    the same. As many tasks as there are buckets can work on it at once; each costs a step in every batch. A
    command that is broken off changes nothing.

    \b
    Example:
      headwater rescale shop.py totals 16
    """
    pipeline = headwater.load(file)
    check_parts(pipeline)
    check_rescalable(pipeline, node, buckets)
    title = pipeline[node].title
    with counting(f"rescaling {title}") as report:
        done = headwater.rescale(pipeline, node, buckets, report=report, **where)
    click.echo(f"rescaled {title} from {done.before} to {done.buckets} buckets")
