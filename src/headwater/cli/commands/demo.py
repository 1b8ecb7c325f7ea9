"""``headwater demo``: the example in ``examples/shop``, live in the terminal, or processed and proved.

Invariant: however it ends, the generator and the nodes are stopped, and a directory that was not asked
for is removed.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, chdir, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import click
from rich.console import Console
from rich.live import Live

import headwater
from headwater import BackgroundRun, Pipeline, RunOptions, Server, ServeSettings, Status
from headwater.api.session import create_topics
from headwater.cli.commands.run import FRAME, SECOND, tell_broken
from headwater.cli.demo.customers import Updates, capturing, prepare
from headwater.cli.demo.feed import EventFeed
from headwater.cli.demo.proof import prove
from headwater.cli.demo.screen import DemoScreen, Scene
from headwater.cli.demo.served_views import ask_server
from headwater.cli.demo.views import view_samples
from headwater.cli.failure import Terminated
from headwater.cli.formats import units
from headwater.cli.options import verbose_option
from headwater.cli.screens.run_output import summary
from headwater.cli.screens.terminal import duplicated
from headwater.errors import HeadwaterError, UsageError

Show = Callable[[Scene], None]
REMOVE_SECONDS = 5.0
BATCHES = 8
"""In about so many batches a fixed amount is processed: it should be proved of more than one."""


@click.command()
@click.option(
    "--events",
    type=click.IntRange(min=1),
    metavar="N",
    help="Write N events at once, and no more after them.",
)
@click.option("--exit", "ends", is_flag=True, help="With --events: verify the views, and exit.")
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="A new directory for log, views and database, which is kept.  [default: a temporary one]",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help=f"The port of the dashboard.  [default: {ServeSettings.port}, or any that is free]",
)
@verbose_option
def demo(events: int | None, ends: bool, directory: Path | None, port: int | None) -> None:
    """Watch an example pipeline at work: a small web shop.

    A generator writes orders, searches, parcels and prices to a log in a temporary directory, some of
    them twice or late, and customers to an SQLite database, which is captured. Nine views are derived from
    them. The terminal shows the address of the dashboard, the nodes at work, the views as they change, and
    how long an UPDATE in the database takes to a view. Ctrl-C ends it. The code is in examples/shop, also
    within the installed package; the last line says where.

    With --events N --exit, N events are processed, then every view is computed again from the log,
    and in plain Python from the events, and compared; and a server is asked for each. Exits with 1 if
    anything differs.

    \b
    Examples:
      headwater demo
      headwater demo --dir ./shop
      headwater demo --events 20000 --exit
    """
    if ends and events is None:
        raise UsageError("--exit needs --events", hint="as in `headwater demo --events 20000 --exit`")
    code = _example()
    with duplicated(sys.stdout) as out:
        with _directory(directory) as folder:
            try:
                _play(_pipeline(code, folder), code, DemoOptions(events, ends, port), out)
            except KeyboardInterrupt as error:
                if ends or isinstance(error, Terminated):
                    raise
        _tell_more(code, directory, out)


@dataclass(frozen=True)
class DemoOptions:
    """What was asked for."""

    events: int | None
    """How many events; None: some all the time."""
    ends: bool
    """Whether the views are proved, and the demo ends."""
    port: int | None
    """The port of the dashboard."""


def _play(pipeline: Pipeline, code: Path, play: DemoOptions, out: Console) -> None:
    started = time.monotonic()
    create_topics(pipeline)
    customers = prepare(pipeline)
    with EventFeed(code / "feed.py", pipeline.log, customers, play.events) as feed, ExitStack() as stack:
        if play.ends:
            statuses = _run(pipeline, feed, DemoOutput(out, fixed=play.events))
        else:
            server = stack.enter_context(_dashboard(pipeline, play.port))
            # Not where views are proved: nobody has told the proof of it.
            updates = stack.enter_context(Updates(pipeline, customers))
            statuses = _run(pipeline, feed, DemoOutput(out, updates, server.url))
    if not play.ends:  # it has ended by itself, so no node is left that could go on
        tell_broken(statuses)
        raise click.exceptions.Exit(1)
    assert play.events is not None
    for each in statuses:
        click.echo(summary(each))
    click.echo()
    prove(pipeline, play.events)
    ask_server(pipeline)
    seconds = time.monotonic() - started
    click.echo(f"{units.plural(play.events, 'event')} processed and proved in {seconds:.1f} s")


def _dashboard(pipeline: Pipeline, port: int | None) -> Server:
    """Start the server of the dashboard, at any port that is free if the usual one is taken."""
    try:
        usual = ServeSettings.port if port is None else port
        return headwater.open_server(pipeline, settings=ServeSettings(port=usual))
    except UsageError:
        if port is not None:
            raise
        return headwater.open_server(pipeline, settings=ServeSettings(port=0))


@dataclass(frozen=True)
class DemoOutput:
    """Where the demo is shown, and what beside the nodes."""

    out: Console
    updates: Updates | None = None
    dashboard: str | None = None
    fixed: int | None = None
    """How many events are processed before it ends; None: it goes on."""


def _run(pipeline: Pipeline, feed: EventFeed, shown: DemoOutput) -> list[Status]:
    """Run the pipeline until it is broken or, with a ``fixed`` number of events, until it has caught up."""
    work: BackgroundRun | None = None
    try:
        with _display(pipeline, shown) as show:
            if shown.fixed is not None:
                with capturing(pipeline):
                    _write(feed, show, shown.fixed)
            work = BackgroundRun(pipeline, _options(shown.fixed))
            _follow(work, pipeline, feed, shown.updates, show)
    except BaseException:
        feed.close()
        if work is not None:
            shown.out.print(f"stopping, after {units.plural(feed.written, 'event')} …")
            work.stop()
            tell_broken(work.statuses())
        raise
    return work.result()


def _options(fixed: int | None) -> RunOptions:
    if fixed is None:
        return RunOptions()
    return RunOptions(until_caught_up=True, limit=max(1000, fixed // BATCHES))


def _write(feed: EventFeed, show: Show, events: int) -> None:
    """Wait until all events are written."""
    while not feed.ended(FRAME):
        show(Scene(feed.written, step=f"writing {units.plural(events, 'event')}"))


def _follow(
    work: BackgroundRun, pipeline: Pipeline, feed: EventFeed, updates: Updates | None, show: Show
) -> None:
    scene, due = Scene(feed.written), 0.0
    while not work.ended(FRAME):
        feed.ended(0)  # says so if it failed
        if time.monotonic() >= due:
            scene = Scene(feed.written, work.statuses(), view_samples(pipeline), work.step, scene.update)
            due = time.monotonic() + SECOND
        update = None if updates is None else updates.last
        scene = scene if update == scene.update else replace(scene, update=update)
        show(scene)


@contextmanager
def _display(pipeline: Pipeline, shown: DemoOutput) -> Iterator[Show]:
    """Return what shows scenes: a screen that is drawn in place or, elsewhere than in a terminal, lines."""
    out, ends = shown.out, shown.dashboard is None
    more = f"{_command()} view list --log {pipeline.log}"
    screen = DemoScreen("" if ends else "Ctrl-C ends", more, shown.dashboard)
    if not out.is_terminal:
        if shown.dashboard is not None:
            out.print(f"dashboard at {shown.dashboard}", soft_wrap=True)
        yield _lines(screen, lambda line: out.print(line, soft_wrap=True, markup=False))
        return
    with Live(console=out, auto_refresh=False, transient=ends, redirect_stderr=False) as live:
        yield lambda scene: live.update(screen.draw(scene, out), refresh=True)


def _lines(screen: DemoScreen, out: Callable[[str], None]) -> Show:
    """Return what prints each step, and then each new scene, as a line."""
    last = Scene(0)

    def show(scene: Scene) -> None:
        nonlocal last
        if scene.step is not None and scene.step != last.step:
            out(f"{scene.step} …")
        elif scene.step is None and scene.update != last.update:
            if scene.update is not None and scene.update.seconds is not None:
                out(scene.update.text(sys.maxsize))
        elif scene.step is None and scene is not last:
            out(screen.line(scene))
        last = scene

    return show


def _example() -> Path:
    """Return the directory of the example: in the installed package, else beside its sources."""
    package = Path(headwater.__file__).parent
    for folder in (package / "examples" / "shop", package.parents[1] / "examples" / "shop"):
        if (folder / "shop.py").is_file():
            return folder
    raise HeadwaterError("the files of the demo are missing", hint="install Headwater again")


def _pipeline(code: Path, folder: Path) -> Pipeline:
    """Return the example's pipeline, with its files in a directory."""
    click.echo("starting a generator of events and Spark, which takes some seconds …", err=True)
    with chdir(folder):  # its files are declared from here on
        return headwater.load(code / "shop.py")


@contextmanager
def _directory(directory: Path | None) -> Iterator[Path]:
    """Give a directory of one's own: the one that was asked for, or a temporary one."""
    if directory is not None:
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            raise UsageError(
                f'"{directory}" is not an empty directory', hint="name one that is not there yet"
            )
        directory.mkdir(parents=True, exist_ok=True)
        yield directory.resolve()
        return
    temporary = tempfile.mkdtemp(prefix="headwater-demo-")
    try:
        yield Path(temporary)
    finally:
        _remove(temporary)


def _remove(directory: str) -> None:
    """Remove a directory, again where Spark was still making something in it meanwhile."""
    deadline = time.monotonic() + REMOVE_SECONDS
    while os.path.exists(directory) and time.monotonic() < deadline:
        shutil.rmtree(directory, ignore_errors=True)


def _tell_more(code: Path, directory: Path | None, out: Console) -> None:
    """Say where the code is, and the data if it is kept."""
    lines = ["its log and views, in a temporary directory, are removed"]
    if directory is not None:
        start = f"{_command(near=False)} run {shlex.quote(str(code / 'shop.py'))}"
        lines = [f'its log and views are kept in "{directory}"; go on with:']
        lines += [f"  cd {shlex.quote(str(directory))} && {start}"]
    for line in (*lines, f"its code: {_near(code)}"):
        out.print(line, soft_wrap=True, markup=False)


def _near(path: Path) -> str:
    """Return a path as it is named from here, if it is below."""
    near = os.path.relpath(path)
    return str(path) if near.startswith(os.pardir) else near


def _command(*, near: bool = True) -> str:
    """Return what starts this program: its name, or its path where the name is not found."""
    script = Path(sys.executable).with_name("headwater")
    if shutil.which("headwater") or not script.is_file():
        return "headwater"
    return _near(script) if near else str(script)
