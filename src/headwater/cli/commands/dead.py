"""``headwater dead``: records on which a node's code failed, and trying them again."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import click

import headwater
from headwater import DeadLetter
from headwater.cli.formats import units
from headwater.cli.formats.tables import print_ndjson, print_table
from headwater.cli.options import format_option, verbose_option


@click.group()
def dead() -> None:
    """List, show and redrive records that nodes have set aside."""


@dead.command("list")
@click.argument("file")
@format_option("table", "ndjson", default="table")
@verbose_option
def list_(file: str, form: str) -> None:
    """List the nodes of the pipeline in FILE that have set records aside.

    \b
    Example:
      headwater dead list shop.py
    """
    letters = groupby(headwater.dead_letters(file), lambda each: each.node)
    found = [_summary(name, list(rows)) for name, rows in letters]
    if form == "ndjson":
        print_ndjson(found)
    elif found:
        print_table(("node", ">records", "newest", "error"), [tuple(each.values()) for each in found])
    else:
        click.echo("no records are set aside", err=True)


@dead.command()
@click.argument("file")
@click.argument("node")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="The newest N.")
@format_option("table", "ndjson", default="table")
@verbose_option
def show(file: str, node: str, limit: int, form: str) -> None:
    """Show the records that NODE has set aside, with where they came from and the error.

    \b
    Example:
      headwater dead show shop.py totals
    """
    letters = headwater.dead_letters(file, node)[-limit:]
    if form == "ndjson":
        print_ndjson(each.to_dict() for each in letters)
    else:
        columns = ("topic", ">partition", ">offset", "error", "record")
        print_table(
            columns, [[getattr(each, name.removeprefix(">")) for name in columns] for each in letters]
        )


@dead.command()
@click.argument("file")
@click.argument("node")
@verbose_option
def redrive(file: str, node: str) -> None:
    """Append the records that NODE has set aside to their topics again.

    Correct the code first, and restart the pipeline. Each is a new record of its topic, which every
    reader of the topic meets; it is appended once, however often this is called.

    \b
    Example:
      headwater dead redrive shop.py totals
    """
    count = headwater.redrive(file, node)
    click.echo(f"appended {units.plural(count, 'record')} again")


def _summary(name: str, letters: Sequence[DeadLetter]) -> dict[str, Any]:
    last = letters[-1]
    return {"node": name, "records": len(letters), "newest": units.moment(last.at), "error": last.error}
