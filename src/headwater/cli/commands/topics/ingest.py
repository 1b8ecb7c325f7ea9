"""``headwater ingest`` and ``feed``: what comes by UDP, TCP or HTTP becomes records, and goes out by UDP."""

from __future__ import annotations

import threading
from typing import Any

import click

import headwater
from headwater import Log, Start
from headwater.api.background import Background
from headwater.cli.failure import say
from headwater.cli.formats import ingest_lines, units
from headwater.cli.formats.tables import print_ndjson
from headwater.cli.options import StartGroup, format_option, with_log
from headwater.cli.options import start as position
from headwater.cli.screens.progress import progress
from headwater.durations import now
from headwater.ingest import BackgroundIngest, FeedSender, IngestSettings, IngestStatus, WebhookSettings

SECOND = 1.0


@click.group(cls=StartGroup)
def ingest() -> None:
    """Take in what has no client of the log.

    URL is "statsd://HOST:PORT", "tcp://HOST:PORT", "syslog://HOST:PORT", "file:PATH" or
    "queue:TOPIC?group=GROUP".

    \b
    Examples:
      headwater ingest statsd://127.0.0.1:8125 --topic metrics
      headwater ingest file:./app.log --topic events --follow
      headwater ingest status --name metrics
    """


_name_option = click.option("--name", help="The name under which it goes on later.  [default: the topic's]")


@ingest.command()
@click.argument("address", metavar="URL")
@click.option("--topic", required=True, help="The topic that records go to.")
@_name_option
@click.option("--flush", metavar="INTERVAL", default="10 seconds", show_default=True,
              help="StatsD: the interval over which samples are aggregated.")  # fmt: skip
@click.option("--raw", is_flag=True, help="StatsD: keep each sample as it is.")
@click.option("--text", metavar="COLUMN", help="Lines: put each into this column, and not JSON into all.")
@click.option("--follow", is_flag=True, help="A file: go on as it grows and is rotated.")
@click.option(
    "--on-error",
    type=click.Choice(["stop", "dead_letter"]),
    help="What becomes of a line that does not fit.  [default: stop of a file, dead_letter of a socket]",
)
@format_option("lines", "ndjson", default="lines")
@with_log(make=True)
def start(log: Log, address: str, topic: str, name: str | None, form: str, **how: Any) -> None:
    """Take in what comes at URL, until Ctrl-C, which waits until all of it is durable.

    What does not become a record is counted, told on the terminal and shown by `headwater ingest status`.

    \b
    Example:
      headwater ingest start statsd://127.0.0.1:8125 --topic metrics --flush "1 minute"
    """
    settings = IngestSettings(**how)
    work = BackgroundIngest(headwater.ingest.open(address, topic, log=log, name=name, settings=settings))
    _watch(work, form)


@ingest.command()
@click.argument("name")
@click.option("--topic", required=True, help="The topic that events go to.")
@click.option(
    "--secret",
    metavar="env:NAME|file:PATH",
    required=True,
    help="Where the sender's secret is.",
)
@click.option(
    "--scheme",
    type=click.Choice(["standard", "github", "stripe"]),
    default="standard",
    show_default=True,
    help="Who signs, and how.",
)
@click.option(
    "--listen", metavar="HOST:PORT", default="127.0.0.1:8780", show_default=True, help="Where to listen."
)
@click.option("--window", metavar="INTERVAL", default="5 minutes", show_default=True,
              help="How far a signed time may be from now.")  # fmt: skip
@click.option("--remember", metavar="INTERVAL", default="7 days", show_default=True,
              help="How long a repeat of a delivery is known.")  # fmt: skip
@format_option("lines", "ndjson", default="lines")
@with_log(make=True)
def webhook(log: Log, name: str, topic: str, form: str, **how: Any) -> None:
    """Take in the deliveries of a webhook, posted to /NAME, until Ctrl-C.

    A delivery becomes an event if its signature is right and it is recent; a repeat of one makes no second
    event, also after a crash.

    \b
    Example:
      headwater ingest webhook billing --topic invoices --secret env:BILLING_SECRET --scheme stripe
    """
    settings = WebhookSettings(**how)
    _watch(BackgroundIngest(headwater.ingest.open_webhook(name, topic, log=log, settings=settings)), form)


@ingest.command("status")
@click.option("--name", required=True, help="Its name: that of its topic, unless it was given one.")
@format_option("lines", "ndjson", default="lines")
@with_log()
def show_status(log: Log, name: str, form: str) -> None:
    """Show what a way in has counted, in whatever process it runs, by what it has noted in the log.

    \b
    Example:
      headwater ingest status --name metrics
    """
    status = headwater.ingest.status(log, name)
    _show(status, form)
    if form == "lines" and status.noted is not None:
        click.echo(f"noted {units.age(max(0, now() - status.noted))} ago")


def _watch(work: BackgroundIngest, form: str) -> None:
    """Show how it is doing until it ends, and how it was doing then."""
    try:
        with work, progress(work.address, None) as step:
            if form == "lines":
                click.echo(f"{work.address}, until Ctrl-C", err=True)
            _watch_counts(work, form, step)
    finally:
        _show(work.status(), form)


def _watch_counts(work: BackgroundIngest, form: str, step: Any) -> None:
    rows, before = 0, work.status()
    while not work.ended(SECOND):
        status = work.status()
        step(0, status.counts.get("rows", 0) - rows)
        rows = status.counts.get("rows", 0)
        if form == "ndjson" and status.counts != before.counts:
            print_ndjson([status.to_dict()])
        if status.losses != before.losses:
            say("warning", ingest_lines.warning(status))
        before = status


def _show(status: IngestStatus, form: str) -> None:
    if form == "ndjson":
        print_ndjson([status.to_dict()])
    else:
        click.echo(ingest_lines.line(status))


@click.command()
@click.argument("topic")
@click.option("--to", required=True, metavar="ADDRESS:PORT", help="A multicast group, or one receiver.")
@click.option(
    "--from", "start", type=position, metavar="POSITION", default="latest", show_default=True,
    help="Where to begin: earliest, latest, an offset, a time or orders:0=12.",
)  # fmt: skip
@click.option("--interface", metavar="ADDRESS", help="The address of the network interface it goes out by.")
@with_log()
def feed(log: Log, topic: str, to: str, start: Start, interface: str | None) -> None:
    """Send the records of TOPIC by UDP as they are appended, until Ctrl-C.

    Receivers are programs with headwater.ingest.Feed: they notice what is lost, and fetch it from the log.

    \b
    Example:
      headwater feed orders --to 239.0.0.1:5000
    """
    stop = threading.Event()
    with FeedSender(log, topic, to, start=start, interface=interface) as sender:
        work = Background(lambda: sender.run(stop))
        try:
            _watch_sender(sender, work, f"{topic} to {to}")
        finally:
            stop.set()
            work.ended(5 * SECOND)
            sent = sender.counts.to_dict()
            rows = units.plural(sent.get("rows", 0), "record")
            click.echo(f"sent {rows} in {units.plural(sent.get('datagrams', 0), 'datagram')}")
    work.result()


def _watch_sender(sender: FeedSender, work: Background[None], what: str) -> None:
    rows = 0
    with progress(what, None) as step:
        while not work.ended(SECOND):
            now = sender.counts.to_dict().get("rows", 0)
            step(0, now - rows)
            rows = now
