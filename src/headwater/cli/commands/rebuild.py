"""``headwater rebuild`` and ``headwater reset``: a view computed anew, from the beginning or a place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from headwater.cli import options, spark
from headwater.cli.background import apart
from headwater.cli.commands.check import check_parts
from headwater.cli.options import spark_options, verbose_option
from headwater.cli.screens.progress import waiting
from headwater.errors import UsageError
from headwater.log import Start
from headwater.pipeline.loading import load
from headwater.pipeline.pipeline import Pipeline

if TYPE_CHECKING:
    from headwater.engine.runner import Runner


@click.command()
@click.argument("file")
@click.argument("node")
@spark_options
@verbose_option
def rebuild(file: str, node: str, **where: Any) -> None:
    """Compute the view NODE of the pipeline in FILE anew from the log.

    It is built beside the one that readers see, and takes its place when it has caught up. A pipeline
    that runs meanwhile goes on with the new one.

    \b
    Example:
      headwater rebuild shop.py totals
    """
    pipeline = _loaded(file, node)
    with waiting(f'rebuilding view "{node}"'):
        apart(partial(_with_runner, pipeline, where, lambda runner: runner.rebuild(node)))
    click.echo(f'rebuilt view "{node}"')


@click.command()
@click.argument("file")
@click.argument("node")
@click.option(
    "--to", type=options.start, metavar="PLACE", required=True, help="earliest, latest, an offset or a time."
)
@spark_options
@verbose_option
def reset(file: str, node: str, to: Start, **where: Any) -> None:
    """Let the view NODE of the pipeline in FILE begin anew, empty, from another place in its inputs.

    What lies before that place is left out. A time is one of receipt, as "2026-01-02T03:04:05Z" or
    "10 minutes ago".

    \b
    Example:
      headwater reset shop.py totals --to "1 hour ago"
    """
    pipeline = _loaded(file, node)
    with waiting(f'resetting view "{node}"'):
        apart(partial(_with_runner, pipeline, where, lambda runner: runner.reset(node, to)))
    click.echo(f'reset view "{node}"; it fills when the pipeline runs')


def _loaded(file: str, node: str) -> Pipeline:
    pipeline = load(file)
    check_parts(pipeline)
    found = pipeline[node]  # says so if there is none
    if not found.has_versions:
        hint = found.recompute_hint
        raise UsageError(f"{found.title} cannot be built anew", detail="only views have versions", hint=hint)
    return pipeline


def _with_runner(pipeline: Pipeline, where: Mapping[str, Any], work: Callable[[Runner], Any]) -> None:
    spark.declare(pipeline)
    session = spark.start(spark.log_of(pipeline), **where)
    from headwater.engine.runner import Runner

    with Runner(pipeline, spark=session) as runner:
        work(runner)
