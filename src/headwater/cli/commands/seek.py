"""``headwater seek``: move what a group has committed."""

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
    metavar="PLACE",
    required=True,
    help="earliest, latest, an offset, a time or a position.",
)
@with_log()
def seek(log: Log, group: str, topic: str, to: Start) -> None:
    """Make GROUP go on from another place in TOPIC.

    A time is one of receipt: "2026-01-02T03:04:05Z", "2026-01-02" or "10 minutes ago". A position is
    what `produce` prints, as orders:0=12,1=7. Prints the position that the group has now.

    \b
    Example:
      headwater seek billing orders --to "1 hour ago"
    """
    known = log.groups()
    position = log.seek(group, topic, to)
    if group not in known:
        say("note", "; ".join(filter(None, (f'group "{group}" is new', nearest(group, known)))))
    click.echo(position.brief)
