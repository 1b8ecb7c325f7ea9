"""``headwater capture``: a database's changes in a log, for any consumer; and what its tables look like."""

from __future__ import annotations

from typing import Any

import click

import headwater
from headwater import BackgroundCapture, CaptureStatus
from headwater.api.captures import describe_lines
from headwater.cli import log_location
from headwater.cli.failure import say
from headwater.cli.formats import units
from headwater.cli.formats.tables import print_ndjson
from headwater.cli.options import format_option, log_option, log_url, verbose_option

SECOND = 1.0


class _CaptureGroup(click.Group):
    """A group whose commands are words, and whose other arguments are those of ``start``."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            args = ["start", *args]
        return super().resolve_command(ctx, args)


@click.group(cls=_CaptureGroup)
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
    database: str,
    tables: str,
    name: str,
    until_caught_up: bool,
    on_error: Any,
    transactions: bool,
    form: str,
    url: str | None,
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
    worker = headwater.capture_tables(
        database, tables, log=named, name=name, on_error=on_error, transactions=transactions
    )
    if until_caught_up:
        worker.catch_up()
        _show(worker.status(), form)
        return
    with BackgroundCapture(worker) as work:
        shown = None
        while not work.ended(SECOND):
            if (status := work.status()) != shown:
                _show(status, form)
                shown = status
        work.result()


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


def _of(status: CaptureStatus) -> str:
    """Tell how many rows there are in all while snapshots are made."""
    return f" of about {sum(status.expected.values()):,}" if status.state == "snapshot" else ""


def _show(status: CaptureStatus, form: str) -> None:
    if form == "ndjson":
        print_ndjson([status.to_dict()])
        return
    rows = sum(each.rows for each in status.snapshots.values())
    click.echo(
        f"{status.capture}: {status.state}, {units.plural(rows, 'row')} of snapshots{_of(status)},"
        f" {units.plural(status.changes, 'change')}, at {status.position or 'the beginning'}"
    )
    if status.state == "waiting" and status.error is not None:
        say("warning", f"{status.error.message}: {status.error.detail or 'it is tried again'}")
    for table, why in status.stopped.items():
        say("warning", f'table "{table}" is captured no more: {why}')
