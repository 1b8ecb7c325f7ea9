"""``headwater lag``: how far groups are behind, and an exit code for those who watch them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import click

from headwater import Lag, Log
from headwater.cli.failure import say
from headwater.cli.formats import units
from headwater.cli.formats.tables import print_ndjson, print_table
from headwater.cli.options import format_option, with_log
from headwater.errors import UsageError, nearest


@click.command()
@click.option("--group", metavar="G", help="Only this group.  [default: all]")
@click.option(
    "--alert-over",
    type=click.IntRange(min=0),
    metavar="N",
    help="Exit with 1 if a group is more than N records behind in a topic.",
)
@format_option("table", "ndjson", default="table")
@with_log()
def lag(log: Log, group: str | None, alert_over: int | None, form: str) -> None:
    """Show how far groups are behind, in records and in time.

    "behind" is the age of the oldest record that the group has not committed.

    \b
    Examples:
      headwater lag
      headwater lag --group billing --alert-over 10000 || notify-someone
    """
    lags = [each for name in _groups(log, group) for each in log.lag(name)]
    if form == "ndjson":
        print_ndjson(map(_facts, lags))
    elif lags:
        columns = ("group", "topic", ">partition", ">committed", ">end", ">records", ">behind")
        print_table(columns, map(_row, lags))
    else:
        click.echo("no group has committed anything yet", err=True)
    if alert_over is not None:
        _alert(lags, alert_over)


def _groups(log: Log, group: str | None) -> list[str]:
    groups = log.groups()
    if group is None:
        return sorted(groups)
    if group not in groups:  # or a misspelt name would never raise an alarm
        raise UsageError(f'no group "{group}"', hint=nearest(group, groups))
    return [group]


def _alert(lags: list[Lag], limit: int) -> None:
    behind: Counter[tuple[str, str]] = Counter()
    for each in lags:
        behind[each.group, each.topic] += each.records
    over = {where: records for where, records in behind.items() if records > limit}
    for (group, topic), records in over.items():
        late = f'{units.plural(records, "record")} behind in topic "{topic}", over {limit:,}'
        say("alert", f'group "{group}" is {late}')
    if over:
        raise click.exceptions.Exit(1)


def _row(lag: Lag) -> tuple[object, ...]:
    position = (lag.group, lag.topic, lag.partition, lag.committed, lag.end)
    return *position, lag.records, units.length(lag.behind)


def _facts(lag: Lag) -> dict[str, Any]:
    return {
        "group": lag.group,
        "topic": lag.topic,
        "partition": lag.partition,
        "committed": lag.committed,
        "end": lag.end,
        "records": lag.records,
        "seconds": lag.behind.total_seconds(),
    }
