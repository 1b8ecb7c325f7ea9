"""``headwater seek``: move the committed offsets of a group."""

from __future__ import annotations

import click

from headwater import Log, Start
from headwater.cli import options
from headwater.cli.failure import say
from headwater.cli.options import with_log
from headwater.errors import nearest


@click.command()
@click.argument("group")
@click.argument("topic")
@click.option(
    "--to",
    type=options.start,
    metavar="POSITION",
    required=True,
    help="earliest, latest, an offset, a time, or orders:0=12.",
)
@with_log()
def seek(log: Log, group: str, topic: str, to: Start) -> None:
    """Move GROUP to another position in TOPIC.

    A time is a time of receipt: "2026-01-02T03:04:05Z", "2026-01-02" or "10 minutes ago". `produce`
    prints offsets of partitions, such as orders:0=12,1=7. Prints the position that the group has now.

    \b
    Example:
      headwater seek billing orders --to "1 hour ago"
    """
    groups = log.groups()
    position = log.seek(group, topic, to)
    if group not in groups:
        say("note", "; ".join(filter(None, (f'group "{group}" is new', nearest(group, groups)))))
    click.echo(position.brief)
