"""Whether the demo's views are right: computed again by Spark as a batch, and in plain Python.

The second asks neither the log nor Spark what the events were: the generator tells them again.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING

import click

from headwater.cli.background import apart
from headwater.cli.commands.verify import print_verdicts, tell_wrong, verdicts_of
from headwater.cli.formats import units
from headwater.cli.screens.progress import waiting
from headwater.log.open import open as open_log
from headwater.pipeline.pipeline import Pipeline
from headwater.views import open_views

if TYPE_CHECKING:
    from headwater.engine.proof.verify import Verdict


def prove(pipeline: Pipeline, events: int) -> None:
    """Say whether views and streams are right after so many events; exit with 1 if they are not."""
    with waiting("computing everything again, as a batch over the log"):
        names = [node.name for node in pipeline.order()]
        verdicts = apart(partial(verdicts_of, pipeline, names))
    print_verdicts(verdicts)
    tell_wrong(pipeline, verdicts)
    late, verdicts = against_python(pipeline, events)
    tell_wrong(pipeline, verdicts, "plain Python makes of the same events")
    click.echo("\nall rows are what a batch over the log gives, and what plain Python makes of the events")
    if late:
        click.echo(f"came too late, and kept in topics of the log: {units.plural(late, 'order')}")


def against_python(pipeline: Pipeline, events: int) -> tuple[int, list[Verdict]]:
    """Return how many orders came too late, and how the views compare with what they should hold."""
    from headwater.engine.proof.verify import compared

    feed, oracle = import_module("feed"), import_module("expected")  # beside the pipeline's file
    with open_log(pipeline.log) as log:
        late = oracle.set_aside(log)
    verdicts = []
    with open_views(pipeline.home / "views.db") as views:
        for name, rows in oracle.expected(islice(feed.events(), events), late).items():
            columns = [column for column in views[name].schema.names if column != "revision"]  # of history
            stored = views[name].scan().to_table().select(columns)
            wanted = [{column: row[column] for column in columns} for row in rows]
            verdicts.append(compared(pipeline[name], wanted, stored.to_pylist(), stored.schema))
    return len(set().union(*late.values())), verdicts
