"""``headwater log``: care for the log as a whole."""

from __future__ import annotations

import click

from headwater import Log, TopicInfo, Verification
from headwater.cli.failure import say
from headwater.cli.formats import units
from headwater.cli.options import with_log
from headwater.cli.screens.progress import progress
from headwater.errors import DamagedLog


@click.group()
def log() -> None:
    """Check the log as a whole."""


@log.command()
@click.argument("topic", required=False)
@with_log()
def verify(log: Log, topic: str | None) -> None:
    """Check the log for damage.

    Reads the whole log, or TOPIC, and checks every checksum and the sequence numbers of every producer.
    Prints each problem, and exits with 1 if there is one. Changes nothing.

    \b
    Example:
      headwater log verify
    """
    topics = _topics(log, topic)
    checked = log.verify(topic) if topics is None else _verify(log, topics)
    for finding in checked.findings:
        where = "" if finding.partition is None else f", partition {finding.partition}"
        say("error", f'topic "{finding.topic}"{where}: {finding.problem}')
    within = "" if topics is None else f" in {units.plural(len(topics), 'topic')}"
    read = f"{units.plural(checked.records, 'record')}{within}"
    amount = f"{read} ({units.plural(checked.batches, 'batch')}, {units.size(checked.bytes)})"
    wrong = len(checked.findings)
    click.echo(f"checked {amount}: {units.plural(wrong, 'problem') if wrong else 'all is well'}")
    if wrong:
        raise click.exceptions.Exit(1)


def _topics(log: Log, topic: str | None) -> list[TopicInfo] | None:
    """Return what there is to check, or None where a declaration is damaged and that cannot be told."""
    try:
        return [log.describe(name) for name in ([topic] if topic else [each.name for each in log.topics()])]
    except DamagedLog:
        return None


def _verify(log: Log, topics: list[TopicInfo]) -> Verification:
    """Verify topic after topic, so that there is progress to show."""
    total = Verification()
    with progress("verifying", sum(each.records for each in topics)) as step:
        for each in topics:
            part = log.verify(each.topic.name)
            step(each.records, part.records)
            total += part
    return total
