"""Where the views are that a command reads, so that nobody has to type a path for the usual case."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

import headwater
from headwater import Views
from headwater.api.views import has_views, homes_below, homes_beside
from headwater.cli import log_location
from headwater.cli.options import log_option, log_url, verbose_option
from headwater.errors import HeadwaterError, UsageError, nearest

F = TypeVar("F", bound=Callable[..., Any])


def with_views(command: F) -> F:
    """Give a command ``--home``, ``--pipeline`` and ``--log``, and the open views as its first argument."""

    @functools.wraps(command)
    def opened(*args: Any, home: Path | None, pipeline: str | None, url: str | None, **kwargs: Any) -> Any:
        with open_views(home, pipeline, url) as views:
            return command(views, *args, **kwargs)

    for option in (verbose_option, log_option, _pipeline_option, _home_option):
        opened = option(opened)
    return opened  # type: ignore[return-value]


_home_option = click.option(
    "--home",
    type=click.Path(path_type=Path),
    metavar="DIR",
    envvar="HEADWATER_HOME",
    show_envvar=True,
    help="The directory of the pipeline.  [default: found beside the log]",
)
_pipeline_option = click.option(
    "--pipeline", metavar="NAME", help="The name of the pipeline, where the log has several, or its file."
)


def open_views(home: Path | None, pipeline: str | None, url: str | None) -> Views:
    """Open the views of a pipeline; one that is named by its file knows the passwords of its stores too."""
    if pipeline is not None and pipeline.endswith(".py"):
        return headwater.open_views(pipeline)
    return headwater.open_views(find(home, pipeline, log_url(url)))


def find(home: Path | None, pipeline: str | None, url: str) -> Path:
    """Return the directory of a pipeline with views."""
    if home is not None:
        return _in_home(home, pipeline)
    homes = _beside(url)
    if pipeline is not None:
        return _named(homes, pipeline)
    if not homes:
        raise HeadwaterError(
            f'no views beside the log "{url}"',
            hint="`headwater run` creates them; --home names the directory of a pipeline that is elsewhere",
        )
    if len(homes) > 1:
        names = ", ".join(homes)
        raise UsageError(f'log "{url}" has {len(homes)} pipelines: {names}', hint="name one with --pipeline")
    return next(iter(homes.values()))


def _in_home(home: Path, pipeline: str | None) -> Path:
    if pipeline is not None:
        raise UsageError(f'"{home}" is the home of one pipeline', hint="leave out --pipeline or --home")
    if not has_views(home):
        raise UsageError(f'no views in "{home}"', hint=_meant(home))
    return home


def _meant(home: Path) -> str:
    below = homes_below(home)
    return f'did you mean "{below[0]}"?' if below else "`headwater run` creates them"


def _named(homes: dict[str, Path], pipeline: str) -> Path:
    if pipeline not in homes:
        listed = "pipelines: " + ", ".join(homes) if homes else "`headwater run` creates them"
        raise UsageError(
            f'no pipeline "{pipeline}" with views beside the log', hint=nearest(pipeline, homes) or listed
        )
    return homes[pipeline]


def _beside(url: str) -> dict[str, Path]:
    """Return the views of all pipelines of a log, by the pipeline's name."""
    log_location.check(url, make=False)
    return homes_beside(url)
