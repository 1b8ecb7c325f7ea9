"""``headwater verify``: whether nodes are what a batch over the log gives, and topics what a database has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

import headwater
from headwater import Pipeline, Verdict
from headwater.api.verify import followers, verifiable
from headwater.cli.commands.check import check_parts
from headwater.cli.failure import say
from headwater.cli.formats.tables import print_ndjson
from headwater.cli.formats.verdicts import print_verdicts, tell_differences
from headwater.cli.options import format_option, spark_options, verbose_option
from headwater.cli.screens.progress import waiting
from headwater.cli.wording import NOT_YET


@click.command()
@click.argument("file")
@click.argument("nodes", metavar="[NODE]...", nargs=-1)
@click.option(
    "--against",
    type=click.Choice(["log", "source"]),
    default="log",
    show_default=True,
    help="Compare nodes with a batch over the log, or captured tables and followers with their sources.",
)
@spark_options
@format_option("table", "ndjson", default="table")
@verbose_option
def verify(file: str, nodes: tuple[str, ...], against: str, form: str, **where: Any) -> None:
    """Verify views, streams and sinks against a batch over the log.

    Each view, stream and sink of the pipeline in FILE, or each NODE that is named, is computed again from
    the log as a batch, up to where it has got, and compared row by row; a sink only where its target can be
    read back. Nothing is changed, and the pipeline may run meanwhile. Exits with 1 if anything differs;
    what the comparison does not cover is listed as not verified.

    With --against source, each captured table is compared with the table of its database, and each sink
    with what it should hold.

    \b
    Examples:
      headwater verify shop.py
      headwater verify shop.py newest
      headwater verify shop.py --against source
    """
    pipeline = headwater.load(file)
    check_parts(pipeline)
    if against == "source":
        _verify_source(pipeline, nodes, form, where)
        return
    verifiable(pipeline, nodes)  # says so of what cannot be
    with waiting(f'verifying pipeline "{pipeline.name}"'):
        found = headwater.verify(pipeline, nodes, **where)
    _tell(pipeline, found, form, named=bool(nodes))
    tell_differences(pipeline, found)


def _verify_source(pipeline: Pipeline, nodes: tuple[str, ...], form: str, where: Mapping[str, Any]) -> None:
    sinks = {node.name for node in followers(pipeline, nodes)}
    if not pipeline.captures:
        say("note", f'pipeline "{pipeline.name}" captures no database')
    with waiting(f'comparing pipeline "{pipeline.name}" with its sources'):
        found = headwater.verify_source(pipeline, nodes, **where)
    _tell(pipeline, found, form, named=bool(nodes))
    tables = {each.node: "its database has" for each in found if each.node not in sinks}
    tell_differences(pipeline, found, instead=tables)


def _tell(pipeline: Pipeline, found: Sequence[Verdict], form: str, *, named: bool) -> None:
    verdicts = _begun(pipeline, found)
    _print(verdicts, form)
    _tell_unverified(pipeline, verdicts, sinks=not named)


def _begun(pipeline: Pipeline, verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return the verdicts of nodes that have processed something; say so of the others."""
    for each in verdicts:
        if not each.begun:
            say("note", f"{pipeline[each.node].title} {NOT_YET}")
    return [each for each in verdicts if each.begun]


def _print(verdicts: Sequence[Verdict], form: str) -> None:
    if form == "ndjson":
        print_ndjson(each.to_dict() for each in verdicts)
    elif proved := [each for each in verdicts if each.unproved is None]:
        print_verdicts(proved)
        if all(each.ok for each in proved):
            click.echo(f"\n{_summary(proved)}")


def _summary(proved: Sequence[Verdict]) -> str:
    """Say of verdicts that found nothing wrong what they have found."""
    if not any(each.equal or each.undecided for each in proved):
        return "there are no rows to compare"
    return "all rows are equal" + (
        ", but for what is not verified" if any(each.aside or each.undecided for each in proved) else ""
    )


def _tell_unverified(pipeline: Pipeline, verdicts: Sequence[Verdict], *, sinks: bool) -> None:
    """Name everything that the proof does not cover."""
    for each in verdicts:
        if each.unproved is not None:
            say("note", f"{pipeline[each.node].title} is not verified: {each.unproved}")
        elif each.aside:
            columns = ", ".join(each.aside)
            say("note", f"{pipeline[each.node].title} is verified without its estimates: {columns}")
        if each.undecided:
            kept = f"{each.undecided:,} {'key' if each.undecided == 1 else 'keys'} kept changing"
            say("note", f"{pipeline[each.node].title} is not verified: {kept}")
        if each.expired:
            gone = f"{each.expired:,} rows that go by themselves are not there"
            say("note", f"{pipeline[each.node].title} keeps rows for a time: {gone}")
    for node in (each for each in pipeline.order() if sinks and not each.verifiable):
        say("note", f"{node.title} is not verified: its target cannot be read back")
