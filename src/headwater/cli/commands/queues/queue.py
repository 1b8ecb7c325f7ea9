"""``headwater queue``: which queues there are, how one is doing, its dead letters, forgetting what waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from headwater import Log, Queue, QueueStatus
from headwater.cli.failure import say
from headwater.cli.formats import units
from headwater.cli.formats.tables import print_ndjson, print_table
from headwater.cli.options import format_option, with_log
from headwater.errors import UsageError
from headwater.queue import QueueAlert

F = TypeVar("F", bound=Callable[..., Any])
DEFAULT_GROUP = "workers"
UNKNOWN = "?"
COLUMNS = (">depth", ">ready", ">in flight", ">delayed", ">blocked", "oldest", ">dead", ">lost")


def group_option(command: F) -> F:
    """Give a command ``--group``."""
    return click.option(
        "--group", default=DEFAULT_GROUP, show_default=True, help="The group whose queue it is."
    )(command)


def alert_options(command: F) -> F:
    """Give a command ``--alert-depth`` and ``--alert-age``."""
    command = click.option(
        "--alert-age", metavar="INTERVAL", help='Alert when a message has waited longer, as "5 minutes".'
    )(command)
    return click.option(
        "--alert-depth", type=click.IntRange(min=0), metavar="N", help="Alert when more messages wait."
    )(command)


@click.group()
def queue() -> None:
    """Show queues, redrive dead letters, forget what waits."""


@queue.command("list")
@format_option("table", "ndjson", default="table")
@with_log()
def list_queues(log: Log, form: str) -> None:
    """Show every queue: how much waits in it, how old it is, how much is dead, and who has it open.

    \b
    Example:
      headwater queue list
    """
    told = log.queues()
    if form == "ndjson":
        print_ndjson(each.to_dict() for each in told)
    elif told:
        print_table(("topic", "group", *COLUMNS, ">consumers"), [_listed(each) for each in told])
    else:
        click.echo("no queues", err=True)
    for each in told:
        if each.problem:
            say("warning", f'queue of group "{each.group}" over topic "{each.topic}": {each.problem}')


@queue.command()
@click.argument("topic")
@group_option
@alert_options
@format_option("table", "ndjson", default="table")
@with_log()
def status(
    log: Log, topic: str, group: str, alert_depth: int | None, alert_age: str | None, form: str
) -> None:
    """Show how much waits in the queue of a group over TOPIC, how old it is, and how much is dead.

    It ends with 1 where an alert is due.

    \b
    Example:
      headwater queue status emails --group mailers --alert-age "5 minutes"
    """
    with _existing(log, topic, group) as opened:
        told = opened.status()
    if form == "ndjson":
        print_ndjson([told.to_dict()])
    else:
        print_table(COLUMNS, [_row(told)])
    reasons = QueueAlert(alert_depth, alert_age).reasons(told)
    for reason in reasons:
        say("alert", reason)
    if reasons:
        raise click.exceptions.Exit(1)


@queue.command()
@click.argument("topic")
@group_option
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Show the newest N.")
@format_option("table", "ndjson", default="table")
@with_log()
def dead(log: Log, topic: str, group: str, limit: int, form: str) -> None:
    """Show the dead letters of a group: messages that are delivered no more, and why.

    \b
    Example:
      headwater queue dead emails --group mailers
    """
    with _existing(log, topic, group) as opened:
        letters = list(opened.dead())[-limit:]
    if form == "ndjson":
        print_ndjson(each.to_dict() for each in letters)
    elif letters:
        rows = [(each.origin, each.deliveries, each.reason, str(dict(each.value))) for each in letters]
        print_table(("origin", ">deliveries", "reason", "message"), rows)
    else:
        click.echo("no dead letters", err=True)


@queue.command()
@click.argument("topic")
@group_option
@with_log()
def redrive(log: Log, topic: str, group: str) -> None:
    """Deliver the dead letters of a group to it again; other groups do not notice.

    Each is delivered again once, however often this command is run.

    \b
    Example:
      headwater queue redrive emails --group mailers
    """
    with _existing(log, topic, group) as opened:
        click.echo(f"{units.plural(opened.redrive(), 'message')} to be delivered again")


@queue.command()
@click.argument("topic")
@group_option
@click.option("--dead", is_flag=True, help="Forget the dead letters, and not what waits.")
@with_log()
def purge(log: Log, topic: str, group: str, dead: bool) -> None:
    """Forget what waits in the queue of a group; the records stay in TOPIC.

    What is in flight stays with its consumers.

    \b
    Example:
      headwater queue purge emails --group mailers
    """
    with _existing(log, topic, group) as opened:
        count = opened.purge(dead=dead)
    click.echo(f"forgot {units.plural(count, 'dead letter' if dead else 'message')}")


@queue.command()
@click.argument("topic")
@group_option
@with_log()
def delete(log: Log, topic: str, group: str) -> None:
    """Forget the queue of a group over TOPIC, so that it begins anew; refused while it has consumers.

    \b
    Example:
      headwater queue delete emails --group mailers
    """
    log.delete_queue(topic, group)
    click.echo(f'deleted the queue of group "{group}" over topic "{topic}"')


def _existing(log: Log, topic: str, group: str) -> Queue:
    """Open a queue that is there: to look at one makes none."""
    log.topic(topic)
    if not log.has_queue(topic, group):
        raise UsageError(
            f'no queue of group "{group}" over topic "{topic}"',
            hint="a worker makes it; --group names another",
        )
    return log.queue(topic, group)


def _listed(told: QueueStatus) -> tuple[object, ...]:
    consumers = UNKNOWN if told.consumers is None else told.consumers
    return (told.topic, told.group, *_row(told), consumers)


def _row(told: QueueStatus) -> tuple[object, ...]:
    counts = (told.depth, told.ready, told.in_flight, told.delayed, told.blocked)
    unknown = UNKNOWN if told.depth is None else "-"
    age = unknown if told.oldest is None else units.age(round(told.oldest.total_seconds() * 1e6))
    shown = [UNKNOWN if each is None else each for each in counts]
    return (*shown, age, told.dead, UNKNOWN if told.lost is None else told.lost)
