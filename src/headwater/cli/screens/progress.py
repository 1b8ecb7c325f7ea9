"""Progress of long work, on stderr.

Invariant: nothing is drawn unless stderr is a terminal, so pipes and log files stay clean.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from headwater.cli.screens.terminal import duplicated

Step = Callable[[int, int], None]
"""Called with how much of the total is done more, and how many rows that was."""


@contextmanager
def progress(what: str, total: int | None, *, shown: bool = True) -> Iterator[Step]:
    """Draw a bar towards ``total`` (None: not known) while the block runs."""
    console = Console(stderr=True)
    if not (console.is_terminal and shown):
        yield lambda done, rows: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        TextColumn("{task.fields[rows]:,} rows"),
        TimeElapsedColumn() if total is None else TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, expand=True) as bar:
        task = bar.add_task(what, total=total, rows=0)

        def step(done: int, rows: int) -> None:
            bar.update(task, advance=done, rows=bar.tasks[task].fields["rows"] + rows)

        yield step


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show that something goes on whose length is not known."""
    with duplicated(sys.stderr) as console:
        if not console.is_terminal:
            yield
            return
        columns = (SpinnerColumn(), TextColumn(what), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True) as bar:
            bar.add_task(what, total=None)
            yield


@contextmanager
def counting(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show how much of something is done, once it is told how much there is."""
    with duplicated(sys.stderr) as console:
        if not console.is_terminal:
            yield lambda done, total: None
            return
        columns = (SpinnerColumn(), TextColumn(what), BarColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task(what, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)
