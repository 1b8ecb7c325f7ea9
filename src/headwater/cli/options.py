"""The options that commands share, so that they are spelled and explained alike everywhere.

Invariant: only a command that says so (``make=True``) makes a log that is not there; the others
report the missing directory instead of leaving an empty one behind.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

import headwater
from headwater.errors import LogUnavailable
from headwater.log import Start
from headwater.log.position import parse_start

DEFAULT_LOG = "file:./data"
F = TypeVar("F", bound=Callable[..., Any])


def start(text: str) -> Start:
    """Read ``earliest``, ``latest``, an offset, a time, or a position as ``produce`` prints it."""
    # click converts a default that has been converted already
    return parse_start(text) if isinstance(text, str) else text


def with_log(*, make: bool = False) -> Callable[[F], F]:
    """Give a command ``--log URL``, and the open log as its first argument."""

    def decorate(command: F) -> F:
        @functools.wraps(command)
        def opened(*args: Any, url: str, **kwargs: Any) -> Any:
            if not make:
                _require(url)
            with headwater.open(url) as log:
                return command(log, *args, **kwargs)

        return _log_option(opened)  # type: ignore[return-value]

    return decorate


def format_option(*formats: str, default: str | None, help: str = "How to print it.") -> Callable[[F], F]:
    """Give a command ``--format``."""
    return click.option(
        "--format", "form", type=click.Choice(formats), default=default, show_default=bool(default), help=help
    )


_log_option = click.option(
    "--log",
    "url",
    metavar="URL",
    envvar="HEADWATER_LOG",
    show_envvar=True,
    default=DEFAULT_LOG,
    show_default=True,
    help="The log: file:DIRECTORY or kafka://HOST:PORT[?OPTION=VALUE&…].",
)


def _require(url: str) -> None:
    scheme, _, path = url.partition(":")
    directory = Path(path.removeprefix("//"))
    if scheme == "file" and path and not directory.exists():
        raise LogUnavailable(
            f'no log at "{directory}"',
            hint="`headwater topic create` makes one; --log or HEADWATER_LOG names one that is elsewhere",
        )
