"""``headwater mark``: append a watermark to a topic."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from headwater import Log
from headwater.cli.options import with_log
from headwater.clock import parse_instant


@click.command()
@click.argument("topic")
@click.argument("time", required=False)
@click.option("--producer-id", metavar="ID", help="The producer that appends it.  [default: a new one]")
@with_log()
def mark(log: Log, topic: str, time: str | None, producer_id: str | None) -> None:
    """Append a watermark to TOPIC: no event before TIME will come.

    TIME is now if it is not given. Nodes that read the topic go on: windows that end by then are closed,
    and rows that wait for a table that rarely changes come out. An event from before TIME that comes all
    the same is late. Other producers that are appending are still waited for.

    \b
    Examples:
      headwater mark customers
      headwater mark orders 2026-01-02T03:00:00Z
    """
    at = datetime.now(UTC) if time is None else parse_instant(time)
    log.topic(topic)
    with log.producer(topic, id=producer_id) as producer:
        producer.mark(at)
    click.echo(f'topic "{topic}": no event before {at.isoformat().replace("+00:00", "Z")} will come')
