"""``headwater dead``: records on which a node's code failed, and trying them again."""

from __future__ import annotations

from typing import Any

import click

from headwater.cli.formats import units
from headwater.cli.formats.tables import print_ndjson, print_table
from headwater.cli.options import format_option, verbose_option
from headwater.engine.failure.dead_letters import DeadLetters
from headwater.errors import UsageError
from headwater.log.open import open as open_log
from headwater.pipeline.loading import load
from headwater.pipeline.node import Node
from headwater.pipeline.pipeline import Pipeline


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
    pipeline = load(file)
    with open_log(pipeline.log) as log:
        letters = {node.name: DeadLetters(log, pipeline.name, node).rows() for node in pipeline.order()}
    found = [_summary(name, rows) for name, rows in letters.items() if rows]
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
    pipeline = load(file)
    with open_log(pipeline.log) as log:
        rows = DeadLetters(log, pipeline.name, _node(pipeline, node)).rows()[-limit:]
    if form == "ndjson":
        print_ndjson(row | {"at": row["at"].isoformat()} for row in rows)
    else:
        columns = ("topic", ">partition", ">offset", "error", "record")
        print_table(columns, [[row[name.removeprefix(">")] for name in columns] for row in rows])


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
    pipeline = load(file)
    with open_log(pipeline.log) as log:
        count = DeadLetters(log, pipeline.name, _node(pipeline, node)).redrive()
    click.echo(f"appended {units.plural(count, 'record')} again")


def _node(pipeline: Pipeline, name: str) -> Node:
    found = pipeline[name]
    if not isinstance(found, Node):
        raise UsageError(f"{found.title} sets no records aside", hint="name a view, a stream or a sink")
    return found


def _summary(name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    last = rows[-1]
    return {"node": name, "records": len(rows), "newest": units.moment(last["at"]), "error": last["error"]}
