"""``headwater compact``: apply a topic's cleanup now."""

from __future__ import annotations

import click

from headwater import Log
from headwater.cli.failure import say
from headwater.cli.formats import units
from headwater.cli.options import with_log
from headwater.cli.screens.progress import waiting


@click.command()
@click.argument("topic")
@with_log()
def compact(log: Log, topic: str) -> None:
    """Compact TOPIC, or apply its retention, now.

    Otherwise this is done in the background. A topic with --cleanup compact keeps the newest record of
    each key; any other topic drops what its retention no longer covers. Offsets never change, and readers
    and writers may go on meanwhile.

    \b
    Example:
      headwater compact customers
    """
    before = log.describe(topic).size
    with waiting(f"compacting {topic}"):
        log.compact(topic)
    after = log.describe(topic).size
    click.echo(f'topic "{topic}": {units.size(before)} before, {units.size(after)} now')
    if before is not None and after is not None and after > before:
        say(
            "note",
            "few records could be dropped, and a compacted record stores its own offset, times and producer",
        )
