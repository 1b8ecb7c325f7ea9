"""``headwater run``: a pipeline at work, on one screen or as lines for those who watch it.

The pipeline runs in a thread of its own; this one draws, and hears Ctrl-C. Invariant: however it
ends, the nodes are stopped first, unless Ctrl-C comes a second time.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import click

import headwater
from headwater import BackgroundRun, Pipeline, RunOptions, ServeSettings, Status, capture_metrics, metrics
from headwater.cli.failure import tell
from headwater.cli.options import format_option, spark_options, verbose_option
from headwater.cli.screens.run_output import Show, conclude, display
from headwater.errors import UsageError

FRAME = 0.2
SECOND = 1.0
"""How often figures are read and, outside of a terminal, printed."""


@click.command()
@click.argument("file")
@click.option("--until-caught-up", is_flag=True, help="End when all input is processed.")
@click.option(
    "--metrics-port",
    "port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="Serve metrics to Prometheus at http://127.0.0.1:N/metrics.",
)
@click.option(
    "--serve", is_flag=True, help="Serve its topics and views over HTTP too, on this machine alone."
)
@click.option(
    "--port",
    "serve_port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help=f"The port to serve at; 0 takes any that is free.  [default: {ServeSettings.port}]",
)
@spark_options
@click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", help="Read at most N rows from a topic in a batch."
)
@click.option(
    "--late-alert",
    "late_share",
    type=click.FloatRange(0, 1),
    default=RunOptions.late_share,
    metavar="SHARE",
    help="Warn when more than this share of a node's rows come too late.  [default: 0.01]",
)
@format_option(
    "screen",
    "ndjson",
    default=None,
    help="The output format.  [default: screen in a terminal or with --until-caught-up, else ndjson]",
)
@verbose_option
def run(
    file: str, port: int | None, serve: bool, serve_port: int | None, form: str | None, **how: Any
) -> None:
    """Run the pipeline in FILE, until Ctrl-C.

    Each node is shown with its rows per second, how long its last batch took, how many records it is
    behind, its clock, its late rows, and the size of its state. A node that fails is retried, after a
    longer pause each time; the others go on. Every node resumes where the last run ended. Ctrl-C stops
    the nodes and waits until they have stopped; a second Ctrl-C does not wait.

    \b
    Examples:
      headwater run shop.py
      headwater run shop.py --until-caught-up
      headwater run shop.py --serve
      headwater run shop.py --metrics-port 9464 --format ndjson >> shop.log
    """
    pipeline, options, started = headwater.load(file), RunOptions(**how), time.monotonic()
    pipeline.check()
    form = form or ("screen" if sys.stdout.isatty() or options.until_caught_up else "ndjson")
    with _endpoint(pipeline.name, port) as endpoint, _server(pipeline, serve, serve_port):
        if endpoint is not None:
            click.echo(f"metrics at {endpoint.url}", err=True)
        work = BackgroundRun(pipeline, options)
        _watch(work, display(form, pipeline.name, ends=options.until_caught_up), endpoint)
        statuses = work.result()
    if not options.until_caught_up:  # it has ended by itself, so no node is left that could go on
        tell_broken(statuses)
        tell_captures(work)
        raise click.exceptions.Exit(1)
    conclude(form, pipeline.name, statuses, time.monotonic() - started)


def _endpoint(pipeline: str, port: int | None) -> AbstractContextManager[metrics.Endpoint | None]:
    return nullcontext() if port is None else metrics.Endpoint(pipeline, port)


@contextmanager
def _server(pipeline: Pipeline, wanted: bool, port: int | None) -> Iterator[None]:
    """Serve the pipeline's topics and views while it runs, and as long as this command does."""
    if not wanted:
        if port is not None:
            raise UsageError("--port is the port of --serve", hint="add --serve, or leave it out")
        yield
        return
    settings = ServeSettings(port=ServeSettings.port if port is None else port)
    with headwater.open_server(pipeline, settings=settings) as server:
        click.echo(f"serving at {server.url}", err=True)
        yield


def _watch(
    work: BackgroundRun, shown: AbstractContextManager[Show], endpoint: metrics.Endpoint | None
) -> None:
    """Show a pipeline until it ends; Ctrl-C, SIGTERM or a closed pipe end it first."""
    try:
        with shown as show:
            _follow(work, show, endpoint)
    except BaseException:
        if sys.stderr.isatty():
            click.echo("stopping …", err=True)
        work.stop()
        tell_broken(work.statuses())
        tell_captures(work)
        raise


def _follow(work: BackgroundRun, show: Show, endpoint: metrics.Endpoint | None) -> None:
    due = 0.0
    statuses: list[Status] = []
    while not work.ended(FRAME):
        new = time.monotonic() >= due
        if new:
            statuses, due = work.statuses(), time.monotonic() + SECOND
        if new and endpoint is not None:
            endpoint.publish(statuses, capture_metrics.text(work.pipeline, work.captures()))
        show(statuses, work.step, new, work.captures())


def tell_broken(statuses: Sequence[Status]) -> None:
    """Say why nodes are not tried again."""
    for status in statuses:
        if status.state == "broken" and status.error is not None:
            tell(status.error)


def tell_captures(work: BackgroundRun) -> None:
    """Say why captures have ended, and what waits."""
    for capture in work.captures():
        if capture.state == "broken" and capture.error is not None:
            tell(capture.error)
