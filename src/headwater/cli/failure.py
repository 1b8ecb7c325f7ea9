"""How a command ends when it does not succeed: what is printed, and with which exit code.

Invariant: stdout carries a command's result only; whatever is said about a failure goes to
stderr, without a traceback unless ``--verbose`` was given.

========================  =========  ==========================================
what happened             exit code  what is printed
========================  =========  ==========================================
a HeadwaterError          1          ``error:``, ``detail:`` and ``hint:`` lines
anything unexpected       1          one line, and how to see the traceback
a wrong command line      2          the reason, and where its help is
Ctrl-C                    130        nothing
SIGTERM                   143        nothing
a closed pipe             141        nothing
========================  =========  ==========================================
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

import click

from headwater.errors import HeadwaterError

INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM
PIPE_CLOSED = 128 + signal.SIGPIPE


class ReportingGroup(click.Group):
    """The root group: runs a command and reports how it failed."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a failure becomes lines on stderr and an exit code."""
        try:
            with _terminated_cleanly():
                result = super().invoke(ctx)
                sys.stdout.flush()  # a closed pipe shows here, not while Python shuts down
                return result
        except (click.exceptions.Exit, click.exceptions.NoArgsIsHelpError):
            raise
        except click.UsageError as error:
            wrong_usage(error)
        except BrokenPipeError:
            _abandon_stdout()
            raise click.exceptions.Exit(PIPE_CLOSED) from None
        except (KeyboardInterrupt, click.Abort):
            raise click.exceptions.Exit(INTERRUPTED) from None
        except Exception as error:
            failed(error, verbose=ctx.params["verbose"])


def failed(error: Exception, *, verbose: bool) -> NoReturn:
    """Print an error in its lines, then exit with 1."""
    if verbose:
        click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
    if isinstance(error, HeadwaterError):
        say("error", error.message)
        say("detail", error.detail)
        say("hint", error.hint)
    else:
        reason = str(error).strip().splitlines()
        say("error", f"{type(error).__name__}: {reason[0]}" if reason else type(error).__name__)
        if not verbose:
            say(
                "hint",
                "this was not expected; run with --verbose, as in `headwater --verbose …`, to see where",
            )
    raise click.exceptions.Exit(1) from None


def wrong_usage(error: click.UsageError) -> NoReturn:
    """Print what is wrong with a command line, then exit with 2."""
    message = error.format_message().rstrip(".")
    say("error", message[:1].lower() + message[1:])
    command = error.ctx.command_path if error.ctx else "headwater"
    say("hint", f"see `{command} --help`")
    raise click.exceptions.Exit(error.exit_code) from None


def say(kind: str, text: str | None) -> None:
    """Print one line about a failure on stderr, if there is something to say."""
    if text:
        colour = {"error": "red", "alert": "red", "warning": "yellow"}.get(kind)
        click.echo(f"{click.style(f'{kind}:', fg=colour, bold=colour is not None)} {text}", err=True)


@contextmanager
def _terminated_cleanly() -> Iterator[None]:
    """Let SIGTERM unwind the stack as Ctrl-C does, so that groups are left and files removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(_number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(TERMINATED)  # no Exception: nothing on the way may catch it


def _abandon_stdout() -> None:
    """Point stdout at nothing, or Python would complain about the closed pipe when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
