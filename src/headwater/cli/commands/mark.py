"""``headwater mark``: say how far time has come in a topic, though nothing is appended."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from headwater.cli.options import with_log
from headwater.clock import parse_instant
from headwater.log import Log


@click.command()
@click.argument("topic")
@click.argument("time", required=False)
@click.option("--producer-id", metavar="ID", help="Whose promise it is.  [default: nobody else's]")
@with_log()
def mark(log: Log, topic: str, time: str | None, producer_id: str | None) -> None:
    """Promise that nothing from before TIME comes to TOPIC any more; now, if it is not given.

    Those who keep time by the topic go on: windows up to then are closed, and what waits for a table that
    rarely changes comes out. What comes from before it all the same is late.

    \b
    Examples:
      headwater mark customers
      headwater mark orders 2026-01-02T03:00:00Z
    """
    at = datetime.now(UTC) if time is None else parse_instant(time)
    log.topic(topic)
    with log.producer(topic, id=producer_id) as producer:
        producer.mark(at)
    click.echo(f'topic "{topic}": nothing from before {at.isoformat().replace("+00:00", "Z")} comes any more')
