"""The options that commands share, so that they are spelled and explained alike everywhere.

Invariant: ``--log`` and ``--verbose`` mean the same before the command and after it; the nearer
``--log`` counts.
"""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

import headwater
from headwater.cli import log_location
from headwater.cli.failure import VERBOSE
from headwater.errors import UsageError

if TYPE_CHECKING:
    from headwater import Start

DEFAULT_LOG = "file:./data"
F = TypeVar("F", bound=Callable[..., Any])


class StartGroup(click.Group):
    """A group whose commands are words, and whose other arguments are those of ``start``."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is named, or ``start``."""
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            args = ["start", *args]
        return super().resolve_command(ctx, args)


def start(text: str) -> Start:
    """Read ``earliest``, ``latest``, an offset, a time, or a position as ``produce`` prints it."""
    if not isinstance(text, str):  # click converts a default that has been converted already
        return text
    from headwater.api.positions import parse_start  # who asks for help does not wait for the log

    try:
        return parse_start(text)
    except UsageError:
        raise UsageError(
            f'"{text}" is not a position in a topic',
            hint='name earliest, latest, an offset such as 1200, a time such as "2026-01-02T03:04:05Z" or '
            '"10 minutes ago", or offsets of partitions such as "orders:0=12,1=7"',
        ) from None


def with_log(*, make: bool = False) -> Callable[[F], F]:
    """Give a command ``--log URL``, and the open log as its first argument.

    Only a command that says so (``make``) makes a log that is not there; the others report the
    missing directory instead of leaving an empty one behind.
    """

    def decorate(command: F) -> F:
        @functools.wraps(command)
        def opened(*args: Any, url: str | None, **kwargs: Any) -> Any:
            named = log_url(url)
            log_location.check(named, make)
            with headwater.open(named) as log:
                return command(log, *args, **kwargs)

        return log_option(verbose_option(opened))  # type: ignore[return-value]

    return decorate


def log_url(url: str | None) -> str:
    """Return the log that a command is to use: its own ``--log``, or the one before the command."""
    return url or click.get_current_context().find_root().params.get("url") or DEFAULT_LOG


def log_argument() -> str:
    """Return the ``--log`` of this command line for a hint, without options, which may hold a password."""
    ctx = click.get_current_context()
    typed = click.core.ParameterSource.COMMANDLINE
    urls = [
        context.params["url"]
        for context in (ctx, ctx.find_root())
        if context.get_parameter_source("url") is typed
    ]
    if not urls:
        return ""
    bare, options, _ = urls[0].partition("?")
    return f" --log {shlex.quote(f'{bare}?…' if options and bare.startswith('kafka:') else urls[0])}"


def format_option(*formats: str, default: str | None, help: str = "The output format.") -> Callable[[F], F]:
    """Give a command ``--format``."""
    return click.option(
        "--format", "form", type=click.Choice(formats), default=default, show_default=bool(default), help=help
    )


def range_options(command: F) -> F:
    """Give a command ``--from`` and ``--to``."""
    for name, argument, default, help in (
        ("--to", "end", "latest", "Where to end; the record at this position is not included."),
        (
            "--from",
            "start",
            "earliest",
            'earliest, latest, an offset, a time ("2026-01-02T03:04:05Z", "10 minutes ago") or orders:0=12.',
        ),
    ):
        command = click.option(
            name, argument, type=start, metavar="POSITION", default=default, show_default=True, help=help
        )(command)
    return command


def spark_options(command: F) -> F:
    """Give a command ``--master`` and ``--conf``, as ``master`` and ``settings``."""
    command = click.option(
        "--conf",
        "settings",
        metavar="KEY=VALUE",
        multiple=True,
        callback=_settings,
        help="A Spark setting; may be repeated.",
    )(command)
    return click.option(
        "--master", metavar="URL", help="The Spark master.  [env var: SPARK_MASTER; default: local[*]]"
    )(command)


def _settings(_ctx: click.Context, _parameter: click.Parameter, texts: Sequence[str]) -> dict[str, str]:
    for text in texts:
        if not re.match(r"spark\.[^=\s]+=", text):
            raise UsageError(
                f'"{text}" is not a Spark setting',
                hint="write it as spark.executor.memory=2g",
            )
    return {key: value for key, _, value in (text.partition("=") for text in texts)}


def _be_verbose(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[VERBOSE] = True  # contexts of one command line share it


verbose_option = click.option(
    "--verbose",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_be_verbose,
    help="Show the traceback of an error.",
)

_HELP = "The log: file:DIRECTORY or kafka://HOST:PORT[?OPTION=VALUE&…]."

root_log_option = click.option(
    "--log",
    "url",
    metavar="URL",
    envvar="HEADWATER_LOG",
    show_envvar=True,
    default=DEFAULT_LOG,
    show_default=True,
    help=_HELP,
)

# Without a default of its own: what stands before the command, or in the environment, counts then.
log_option = click.option(
    "--log",
    "url",
    metavar="URL",
    help=f"{_HELP}  [env var: HEADWATER_LOG; default: {DEFAULT_LOG}]",
)
