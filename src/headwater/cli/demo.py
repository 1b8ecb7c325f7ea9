"""``headwater demo``: the log at work, live in the terminal."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
from rich.console import Console
from rich.live import Live

from headwater.cli import units
from headwater.cli.failure import say
from headwater.cli.options import verbose_option
from headwater.demo.play import Play, Scene, Verdict
from headwater.demo.plot import WRITING, Plot
from headwater.demo.screen import Screen

FRAME = 0.2


@click.command()
@click.option(
    "--seconds", type=click.IntRange(5, 3600), default=20, show_default=True, help="How long it takes, about."
)
@verbose_option
def demo(seconds: int) -> None:
    """Watch the log at work, in a temporary directory.

    Three producers write orders and two groups read them, each a process of its own. The members of
    group billing share the partitions; one is killed (kill -9) and the other takes over. Group search
    is slow: it falls behind and catches up. At the end it is checked that each group has read every
    order. Ctrl-C ends it at once; nothing is left behind.

    \b
    Example:
      headwater demo --seconds 30
    """
    console = Console(highlight=False)
    click.echo("starting producers and consumers …", err=True)
    with Play(seconds * WRITING) as play:
        screen = Screen(time.monotonic())
        scenes = _scenes(play, screen, Plot(play, screen, seconds))
        if console.is_terminal:
            _live(console, screen, scenes)
        else:
            _plain(screen, scenes)
        verdicts = play.verdicts()
    _conclude(verdicts, time.monotonic() - screen.started)


def _scenes(play: Play, screen: Screen, plot: Plot) -> Iterator[Scene]:
    """Yield what there is to see, a few times a second, until the plot ends."""
    ended = False
    while not ended:
        scene = play.look()
        screen.show(scene)
        ended = plot.advance(scene)
        yield scene
        time.sleep(FRAME)


def _live(console: Console, screen: Screen, scenes: Iterator[Scene]) -> None:
    with Live(console=console, auto_refresh=False) as live:
        for _ in scenes:
            live.update(screen.draw(console.height, console.width), refresh=True)
        screen.end()
        live.update(screen.draw(console.height, console.width), refresh=True)


def _plain(screen: Screen, scenes: Iterator[Scene]) -> None:
    told, due = 0, screen.started
    for scene in scenes:
        if scene.at >= due:
            click.echo(screen.line())
            due += 1
        for line in screen.story[told:]:
            click.echo(line)
        told = len(screen.story)


def _conclude(verdicts: list[Verdict], seconds: float) -> None:
    """Say what each group has read; exit with 1 if anything is missing."""
    click.echo(f"{units.plural(verdicts[0].written, 'order')} written and read in {seconds:.1f} s")
    for verdict in verdicts:
        again = f"{verdict.again:,} of them twice" if verdict.again else "none of them twice"
        if verdict.missing:
            say("error", f'group "{verdict.group}" has not read {units.plural(verdict.missing, "order")}')
        else:
            click.echo(f'group "{verdict.group}" has read every order, {again}')
    if any(verdict.missing for verdict in verdicts):
        raise click.exceptions.Exit(1)
    click.echo(f"\nyour own log: {_command()} topic create --help")


def _command() -> str:
    """Return what starts this program from here: its name, or its path where the name is not found."""
    script = Path(sys.executable).with_name("headwater")
    if shutil.which("headwater") or not script.is_file():
        return "headwater"
    near = os.path.relpath(script)
    return str(script) if near.startswith(os.pardir) else near
