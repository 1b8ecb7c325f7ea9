"""What ``headwater run`` prints: a screen drawn in place, lines of JSON, or nothing; and how it ended.

Invariant: as lines of JSON, everything on stdout is a line of JSON.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

import click
from rich.live import Live

from headwater import CaptureStatus, Status
from headwater.cli.failure import say
from headwater.cli.formats import units
from headwater.cli.formats.clocks import ahead_texts
from headwater.cli.formats.tables import print_ndjson
from headwater.cli.screens.run_screen import Screen
from headwater.cli.screens.terminal import duplicated
from headwater.cli.wording import NOT_YET
from headwater.durations import now
from headwater.values.json_ready import calendar_time, json_ready


class Show(Protocol):
    """Shows statuses, what goes on before there are any, and captures; ``new``: they have been read anew."""

    def __call__(  # noqa: D102  # the class says it
        self, statuses: Sequence[Status], step: str | None, new: bool, captures: Sequence[CaptureStatus] = ()
    ) -> None: ...


def display(form: str, pipeline: str, *, ends: bool) -> AbstractContextManager[Show]:
    """Return what shows a pipeline while it runs; ``ends`` says that it will end by itself."""
    if form == "screen" and (sys.stdout.isatty() or not ends):
        return _live(pipeline, ends)
    return _lines(pipeline if form == "ndjson" else None)


def conclude(form: str, pipeline: str, statuses: Sequence[Status], seconds: float) -> None:
    """Print what each node has done, when all have caught up."""
    if form == "ndjson":
        print_ndjson(facts(pipeline, each) for each in statuses)
        return
    for each in statuses:
        click.echo(summary(each))
    for each in statuses:
        for alert in each.alerts:
            say("warning", alert)
    for text in ahead_texts(ahead for each in statuses for ahead in each.ahead):
        say("warning", text)
    click.echo(f'pipeline "{pipeline}" has caught up, in {seconds:.1f} s')


def summary(status: Status) -> str:
    """Return what a node has done in one line."""
    title = f'{status.kind} "{status.node}"'
    if not status.batches:
        return f"{title}: nothing new" if status.begun else f"{title} {NOT_YET}"
    batches = units.plural(status.batches, "batch")
    told = [f"{units.plural(status.rows, 'row')} in, {status.out:,} out, in {batches}"]
    odd = {
        f"{status.late:,} late": status.late,
        units.plural(status.duplicates, "duplicate"): status.duplicates,
    }
    told += [what for what, count in odd.items() if count]
    told += [f"{status.dead:,} set aside so far"] if status.dead else []
    return f"{title}: {', '.join(told)}"


def facts(pipeline: str, status: Status | CaptureStatus) -> dict[str, Any]:
    """Return a status for scripts."""
    return {"time": json_ready(calendar_time(now())), "pipeline": pipeline, **status.to_dict()}


@contextmanager
def _live(pipeline: str, ends: bool) -> Iterator[Show]:
    screen = Screen(pipeline, "" if ends else "Ctrl-C stops")
    with (
        duplicated(sys.stdout) as console,
        Live(console=console, auto_refresh=False, transient=True, redirect_stderr=False) as live,
    ):

        def show(
            statuses: Sequence[Status], step: str | None, new: bool, captures: Sequence[CaptureStatus] = ()
        ) -> None:
            # What ends by itself is summed up in lines of its own; of the other, the last picture stays.
            live.transient = ends or not statuses
            size = console.width, console.height
            live.update(screen.draw(statuses, step, *size, captures), refresh=True)

        yield show


@contextmanager
def _lines(pipeline: str | None) -> Iterator[Show]:
    """Tell what goes on before there are figures; and these, if they are for a pipeline that is named."""
    told: set[str] = set()

    def show(
        statuses: Sequence[Status], step: str | None, new: bool, captures: Sequence[CaptureStatus] = ()
    ) -> None:
        if step is not None and step not in told:
            told.add(step)
            errors.print(f"{step} …")
        if new and pipeline is not None:
            print_ndjson(facts(pipeline, each) for each in statuses)
            print_ndjson(facts(pipeline, each) for each in captures)

    with duplicated(sys.stderr) as errors:
        yield show
