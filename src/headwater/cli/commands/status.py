"""``headwater status``: how far the nodes of a pipeline have got, whether it runs or not."""

from __future__ import annotations

import time
from collections.abc import Iterable

import click

import headwater
from headwater import BucketFigures, Position, Progress
from headwater.cli.failure import say
from headwater.cli.formats import capture_lines, delivery_lines, units
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
    """Show the progress of each node of the pipeline in FILE.

    That is its last batch and how long ago it ended, how many records it is behind, its clock (its
    watermark), the rows of a view, and the offsets up to which it has read. Below is how its state is spread
    over buckets, how much of it is in memory while it runs, the largest buckets with their shares, and the
    keys that a sample of its last rows had most. Nothing is started: the figures are those that the nodes
    have written down, and do not tell whether the nodes run. Captures are shown below, as they have noted it
    in the log: one that has noted nothing for a while is silent. So are deliveries that wait or are set
    aside, of sinks that send messages.

    \b
    Example:
      headwater status shop.py
    """
    nodes, captures = headwater.status(file), headwater.capture_statuses(file)
    if form == "ndjson":
        print_ndjson(each.to_dict() for each in (*nodes, *captures))
    else:
        columns = ("node", ">batch", ">ago", ">lag", ">clock", ">rows", "has read up to")
        print_table(columns, map(_row, nodes))
        print_states(nodes)
    if captures and form != "ndjson":
        click.echo()
        print_table(capture_lines.COLUMNS, map(capture_lines.cells, captures))
    for node in nodes:
        for kind, text in delivery_lines.lines(node):
            say(kind, text)
    for text in (each for capture in captures for each in capture_lines.warnings(capture)):
        say("warning", text)
    for text in ahead_texts(ahead for node in nodes for ahead in node.ahead):
        say("note", text)
    for node in nodes:
        say("note", waiting(node) if node.batch is not None else f'{node.kind} "{node.node}" {NOT_YET}')
    for node in nodes:
        if node.problem is not None:
            say("note", f'rows of view "{node.node}" are not known: {node.problem.message}')
            say("detail", node.problem.detail or "")


def print_states(nodes: list[Progress]) -> None:
    """Show how the states of nodes are spread, if any has one."""
    rows = [_state_row(node, node.buckets) for node in nodes if node.buckets is not None]
    if rows:
        click.echo()
        columns = ("node", ">buckets", ">state", ">in memory", "largest buckets", "frequent keys (sampled)")
        print_table(columns, rows)


def _state_row(node: Progress, buckets: BucketFigures) -> tuple[object, ...]:
    shares = ((f"{number}", size / max(buckets.state_bytes, 1)) for number, size in buckets.largest)
    memory = None if node.memory_bytes is None else units.size(node.memory_bytes)
    state = units.size(buckets.state_bytes)
    return node.node, buckets.count, state, memory, _shares(shares), _shares(node.largest_keys)


def _shares(of: Iterable[tuple[str, float]]) -> str | None:
    return ", ".join(f"{name} {share:.0%}" for name, share in of) or None


def _row(progress: Progress) -> tuple[object, ...]:
    positions = "; ".join(map(_text, progress.positions)) or None
    clock = units.short_moment(calendar_time(progress.clock)) or None
    return progress.node, progress.batch, _ago(progress.ended), progress.lag, clock, progress.rows, positions


def waiting(progress: Progress) -> str | None:
    """Return for whom a node waits, if that has not been heard of for a while."""
    if progress.waits_for is None:
        return None
    name, heard = progress.waits_for[0], progress.waits_for[1] / 1_000_000
    if heard > time.time() - PATIENCE:
        return None
    last = f"last heard of {_ago(heard)} ago" if heard > 0 else "of which nothing has come yet"
    return f'{progress.kind} "{progress.node}" waits for "{name}", {last}'


def _ago(at: float | None) -> str | None:
    """Return how long ago something was, in its largest unit."""
    return None if at is None else units.age(max(0, int((time.time() - at) * 1e6)))


def _text(position: Position) -> str:
    """Return a position with gaps, where a narrow window may break it."""
    return f"{position.topic} " + ", ".join(f"{p}={o}" for p, o in sorted(position.offsets.items()))
