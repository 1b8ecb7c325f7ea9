"""Whether the demo's views are right: computed again by Spark as a batch, and in plain Python.

The second asks neither the log nor Spark what the events were: the generator tells them again.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from itertools import islice
from typing import Any

import click

import headwater
from headwater import Pipeline, Verdict
from headwater.cli.formats import units
from headwater.cli.formats.verdicts import print_verdicts, tell_differences
from headwater.cli.screens.progress import waiting


def prove(pipeline: Pipeline, events: int) -> None:
    """Say whether views and streams are right after so many events; exit with 1 if they are not."""
    with waiting("computing everything again, as a batch over the log"):
        verdicts = headwater.verify(pipeline)
    print_verdicts(verdicts)
    tell_differences(pipeline, verdicts)
    late, verdicts = against_python(pipeline, events)
    tell_differences(pipeline, verdicts, "plain Python makes of the same events")
    click.echo("\nall rows are what a batch over the log gives, and what plain Python makes of the events")
    if late:
        click.echo(f"came too late, and kept in topics of the log: {units.plural(late, 'order')}")


def against_python(pipeline: Pipeline, events: int) -> tuple[int, list[Verdict]]:
    """Return how many orders came too late, and how the views compare with what they should hold."""
    feed, oracle = import_module("feed"), import_module("expected")  # beside the pipeline's file
    with headwater.open(pipeline.log) as log:
        late = oracle.set_aside(log)
    expected = oracle.expected(islice(feed.events(), events), late)
    verdicts = [
        headwater.compare(pipeline, name, _of_view(pipeline, name, rows)) for name, rows in expected.items()
    ]
    return len(set().union(*late.values())), verdicts


def _of_view(pipeline: Pipeline, name: str, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows in the columns of a view, but for the one that tells how a row came about."""
    with headwater.open_views(pipeline) as views:
        columns = [column for column in views[name].schema.names if column != "revision"]
    return [{column: row[column] for column in columns} for row in rows]
