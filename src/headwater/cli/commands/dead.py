"""``headwater dead``: records on which code failed, deliveries that did not arrive, and trying them again."""

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
    """List, show and redrive dead letters of a pipeline's nodes; those of queues: `headwater queue dead`."""


@dead.command("list")
@click.argument("file")
@format_option("table", "ndjson", default="table")
@verbose_option
def list_(file: str, form: str) -> None:
    """List the nodes of the pipeline in FILE that have dead letters.

    A dead letter is a record on which the code of a node failed, so that the node has set it aside; or a
    delivery that was refused, or waits for an endpoint that stays dead.

    \b
    Example:
      headwater dead list shop.py
    """
    letters = groupby(headwater.dead_letters(file), lambda letter: letter.node)
    nodes = [_summary(name, list(rows)) for name, rows in letters]
    if form == "ndjson":
        print_ndjson(nodes)
    elif nodes:
        print_table(("node", ">records", "newest", "error"), [tuple(node.values()) for node in nodes])
    else:
        click.echo("no node has dead letters", err=True)


@dead.command()
@click.argument("file")
@click.argument("node")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Show the newest N.")
@format_option("table", "ndjson", default="table")
@verbose_option
def show(file: str, node: str, limit: int, form: str) -> None:
    """Show the dead letters of NODE, with their origin and error.

    \b
    Example:
      headwater dead show shop.py totals
    """
    letters = headwater.dead_letters(file, node)[-limit:]
    if form == "ndjson":
        print_ndjson(each.to_dict() for each in letters)
    else:
        delivers = any(each.delivery for each in letters)
        origin = ("delivery",) if delivers else ("topic", ">partition", ">offset")
        columns = (*origin, "error", "record")
        print_table(
            columns, [[getattr(each, name.removeprefix(">")) for name in columns] for each in letters]
        )


@dead.command()
@click.argument("file")
@click.argument("node")
@verbose_option
def redrive(file: str, node: str) -> None:
    """Append the dead letters of NODE to their topics again.

    Correct the code and restart the pipeline first. Each becomes a new record of its topic, which all
    readers of the topic get. It is appended once, however often this command is run. Deliveries are sent
    again, in their order, by the pipeline that runs or when it runs next. A command of a handler is decided
    when it comes again, under its request id. What has no place in a topic, as the result of an operator, is
    left out: that is said, and the exit code is 1.

    \b
    Example:
      headwater dead redrive shop.py totals
    """
    letters = headwater.dead_letters(file, node)
    delivers = any(letter.delivery for letter in letters)
    count = headwater.redrive(file, node)
    if delivers:
        click.echo(f"{units.plural(count, 'delivery')} to be sent again")
    else:
        click.echo(f"appended {units.plural(count, 'record')} again")
    homeless = sum(letter.topic is None and not letter.delivery for letter in letters)
    if homeless:
        click.echo(f"{units.plural(homeless, 'record')} without a place in a topic: left out", err=True)
        raise click.exceptions.Exit(1)


@dead.command()
@click.argument("file")
@click.argument("node")
@click.argument("delivery")
@verbose_option
def discard(file: str, node: str, delivery: str) -> None:
    """Give up the DELIVERY of NODE that was refused, so that what its key has next can go.

    \b
    Example:
      headwater dead discard shop.py order_hooks msg_3f0c
    """
    headwater.discard(file, node, delivery)
    click.echo(f"delivery {delivery} is given up")


def _summary(name: str, letters: Sequence[DeadLetter]) -> dict[str, Any]:
    last = letters[-1]
    return {"node": name, "records": len(letters), "newest": units.moment(last.at), "error": last.error}
