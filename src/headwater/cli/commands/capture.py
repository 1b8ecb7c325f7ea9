"""``headwater capture``: a database's changes in a log, for any consumer; and what its tables look like."""

from __future__ import annotations

from typing import Any

import click

import headwater
from headwater import BackgroundCapture, CaptureStatus
from headwater.api.captures import describe_lines
from headwater.cli import log_location
from headwater.cli.failure import say
from headwater.cli.formats import capture_lines, units
from headwater.cli.formats.tables import print_ndjson
from headwater.cli.options import StartGroup, format_option, log_option, log_url, verbose_option
from headwater.durations import now

SECOND = 1.0


@click.group(cls=StartGroup)
def capture() -> None:
    """Capture the changes of a database into the log.

    URL is "postgresql://user@host/database", "mysql://user@host/database" or "sqlite:./app.db". A pipeline
    that declares a capture does this by itself as long as it runs.

    \b
    Examples:
      headwater capture sqlite:./crm.db --tables customers,orders
      headwater capture describe sqlite:./crm.db
      headwater capture drop sqlite:./crm.db
    """


@capture.command()
@click.argument("database", metavar="URL")
@click.option("--tables", required=True, metavar="NAMES", help="The tables, with commas between them.")
@click.option("--name", default="capture", show_default=True, help="The name under which it goes on later.")
@click.option("--until-caught-up", is_flag=True, help="End when all that is committed now is captured.")
@click.option(
    "--max-retained",
    metavar="SIZE",
    help='Give it up when the database keeps more than this for it, as "10 GB".',
)
@click.option(
    "--on-error",
    type=click.Choice(["stop", "dead_letter"]),
    default="stop",
    show_default=True,
    help="What becomes of a row that its topic cannot hold.",
)
@click.option("--transactions", is_flag=True, help="Tell in a topic which transactions are whole.")
@format_option("lines", "ndjson", default="lines")
@log_option
@verbose_option
def start(
    database: str, tables: str, name: str, until_caught_up: bool, form: str, url: str | None, **how: Any
) -> None:
    """Capture tables of the database URL, until Ctrl-C.

    Each table becomes a compacted topic of its name: first the rows that it has, then every change in
    the order of the commits. It goes on where it ended; a kill neither loses nor repeats a change.

    \b
    Example:
      headwater capture start sqlite:./crm.db --tables customers,orders
    """
    named = log_url(url)
    log_location.check(named, make=True)
    if how["max_retained"] is not None:
        how["max_retained"] = units.parse_size(how["max_retained"])
    worker = headwater.capture_tables(database, tables, log=named, name=name, **how)
    if until_caught_up:
        worker.catch_up()
        _show(worker.status(), form)
        return
    with BackgroundCapture(worker) as work:
        shown = None
        while not work.ended(SECOND):
            status = work.status()
            if (news := _news(status)) != shown:
                _show(status, form)
                shown = news
        work.result()


@capture.command("status")
@click.option("--name", default="capture", show_default=True, help="The name of the capture.")
@format_option("lines", "ndjson", default="lines")
@log_option
@verbose_option
def show_status(name: str, form: str, url: str | None) -> None:
    """Show how a capture is doing, in whatever process it runs.

    That is its state, its changes, how far it is behind the database, how much the database keeps for it,
    and what is wrong, as it has noted it in the log. One that has noted nothing for twenty seconds is
    silent: it does not run, or cannot reach the log.

    \b
    Example:
      headwater capture status --name shop.crm
    """
    status = headwater.capture_status(log_url(url), name)
    _show(status, form)
    if form == "lines" and status.noted is not None:
        click.echo(f"noted {units.age(max(0, now() - status.noted))} ago")


@capture.command()
@click.argument("database", metavar="URL")
@verbose_option
def describe(database: str) -> None:
    """Print the tables of the database URL as a pipeline declares them, ready to paste.

    Tables without a primary key are named, and cannot be captured.

    \b
    Example:
      headwater capture describe sqlite:./crm.db
    """
    for line in describe_lines(database):
        click.echo(line)


@capture.command()
@click.argument("database", metavar="URL")
@click.option("--name", default="capture", show_default=True, help="The name of the capture.")
@log_option
@verbose_option
def drop(database: str, name: str, url: str | None) -> None:
    """Remove from the database URL everything that a capture has made there.

    What is in the topics of the log stays; captured again, every table is read anew. The capture of a
    pipeline is named PIPELINE.CAPTURE.

    \b
    Example:
      headwater capture drop sqlite:./crm.db --name shop.crm
    """
    named = log_url(url)
    log_location.check(named, make=True)
    headwater.drop_capture(database, name, named)
    click.echo(f'removed capture "{name}" from the database')


@capture.command()
@click.argument("table")
@click.option("--name", default="capture", show_default=True, help="The name of the capture.")
@log_option
@verbose_option
def resnapshot(table: str, name: str, url: str | None) -> None:
    """Make a new snapshot of TABLE, beside the stream.

    A capture that runs goes on with it within a second; one that does not, when it is started. Rows that
    the table has are written again, and those that it has not are deleted. A table that was captured no
    more, because it did not fit, is captured again.

    \b
    Example:
      headwater capture resnapshot customers --name shop.crm
    """
    headwater.resnapshot(log_url(url), name, table)
    click.echo(f'a new snapshot of table "{table}" is made')


def _news(status: CaptureStatus) -> tuple[object, ...]:
    """Return what is worth a line when it changes: not that time goes on."""
    rows = sum(each.rows for each in status.snapshots.values())
    why = None if status.error is None else status.error.message
    return status.state, status.changes, rows, why, tuple(status.stopped), status.alert is not None


def _show(status: CaptureStatus, form: str) -> None:
    if form == "ndjson":
        print_ndjson([status.to_dict()])
        return
    click.echo(f"{capture_lines.line(status)}, at {status.position or 'the beginning'}")
    for text in capture_lines.warnings(status):
        say("warning", text)
