"""``headwater status``: how far the nodes of a pipeline have got, whether it runs or not."""

from __future__ import annotations

import time
from datetime import timedelta

import click

import headwater
from headwater import Position, Progress
from headwater.cli.failure import say
from headwater.cli.formats import units
from headwater.cli.formats.clocks import ahead_texts
from headwater.cli.formats.tables import print_ndjson, print_table
from headwater.cli.options import format_option, verbose_option
from headwater.cli.wording import NOT_YET
from headwater.values.json_ready import calendar_time

PATIENCE = 10.0
"""Seconds for which nobody asks what a node waits for."""


@click.command()
@click.argument("file")
@format_option("table", "ndjson", default="table")
@verbose_option
def status(file: str, form: str) -> None:
    """Show how far each node of the pipeline in FILE has got.

    Its last batch and how long ago that ended, the records that it is behind, its clock, the rows of
    a view, and up to where its inputs are read. Nothing is started: what is shown is what the nodes
    have written down, so it says nothing about whether they run.

    \b
    Example:
      headwater status shop.py
    """
    found = headwater.status(file)
    if form == "ndjson":
        print_ndjson(each.to_dict() for each in found)
    else:
        columns = ("node", ">batch", ">ago", ">lag", ">clock", ">rows", "has read up to")
        print_table(columns, map(_row, found))
    for text in ahead_texts(ahead for each in found for ahead in each.ahead):
        say("note", text)
    for each in found:
        say("note", waiting(each) if each.batch is not None else f'{each.kind} "{each.node}" {NOT_YET}')
    for each in found:
        if each.problem is not None:
            say("note", f'rows of view "{each.node}" are not known: {each.problem.message}')
            say("detail", each.problem.detail or "")


def _row(each: Progress) -> tuple[object, ...]:
    places = "; ".join(map(_place, each.positions)) or None
    clock = units.short_moment(calendar_time(each.clock)) or None
    return each.node, each.batch, _ago(each.ended), each.lag, clock, each.rows, places


def waiting(each: Progress) -> str | None:
    """Return for whom a node waits, if that has not been heard of for a while."""
    if each.waits_for is None:
        return None
    name, heard = each.waits_for[0], each.waits_for[1] / 1_000_000
    if heard > time.time() - PATIENCE:
        return None
    last = f"last heard of {_ago(heard)} ago" if heard > 0 else "of which nothing has come yet"
    return f'{each.kind} "{each.node}" waits for "{name}", {last}'


def _ago(at: float | None) -> str | None:
    """Return how long ago something was, in its largest unit."""
    if at is None:
        return None
    length = units.length(timedelta(seconds=max(0, round(time.time() - at))))
    return " ".join(length.split()[:2])


def _place(position: Position) -> str:
    """Return a position with gaps, where a narrow window may break it."""
    return f"{position.topic} " + ", ".join(f"{p}={o}" for p, o in sorted(position.offsets.items()))
