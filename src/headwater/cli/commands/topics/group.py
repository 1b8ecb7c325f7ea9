"""``headwater group``: which consumer groups there are, and deleting one."""

from __future__ import annotations

from typing import Any

import click

from headwater import Log
from headwater.cli.formats.tables import print_ndjson, print_table
from headwater.cli.options import format_option, with_log


@click.group()
def group() -> None:
    """List and delete consumer groups."""


@group.command("list")
@format_option("table", "ndjson", default="table")
@with_log()
def list_(log: Log, form: str) -> None:
    """List all groups with their topics and how far behind they are.

    \b
    Example:
      headwater group list
    """
    groups = [_facts(log, name) for name in log.groups()]
    if form == "ndjson":
        print_ndjson(groups)
    elif groups:
        rows = [(each["group"], ", ".join(each["topics"]), each["records"]) for each in groups]
        print_table(("group", "topics", ">records behind"), rows)
    else:
        click.echo("no groups yet; a consumer creates one when it joins", err=True)


@group.command()
@click.argument("name")
@with_log()
def delete(log: Log, name: str) -> None:
    """Delete group NAME with its committed offsets.

    It is refused while the group has members. A consumer that joins it later starts anew.

    \b
    Example:
      headwater group delete billing
    """
    log.delete_group(name)
    click.echo(f'deleted group "{name}"')


def _facts(log: Log, name: str) -> dict[str, Any]:
    lags = log.lag(name)
    return {
        "group": name,
        "topics": sorted({each.topic for each in lags}),
        "records": sum(each.records for each in lags),
    }
