"""How a command ends when it does not succeed: what is printed, and with which exit code.

Invariant: stdout carries a command's result only; whatever is said about a failure goes to
stderr, without a traceback unless ``--verbose`` was given.

========================  =========  ==========================================
what happened             exit code  what is printed
========================  =========  ==========================================
a HeadwaterError          1          ``error:``, ``detail:`` and ``hint:`` lines
an OSError                1          the same, from what the system says
anything unexpected       1          one line, and how to see the traceback
a wrong command line      2          ``error:`` and ``hint:`` lines
Ctrl-C                    130        nothing
SIGTERM                   143        nothing
a closed pipe             141        nothing
========================  =========  ==========================================
"""

from __future__ import annotations

import errno
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

from headwater.cli import wording
from headwater.cli.stdout import results_only
from headwater.errors import HeadwaterError, UsageError

INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM
PIPE_CLOSED = 128 + signal.SIGPIPE
WRONG_USAGE = 2
VERBOSE = "headwater.verbose"
"""Where the context notes that tracebacks are wanted."""
HELP = "headwater.help"
"""Where it notes that a command's help is asked for, whatever stands before the command."""
_NOT_ALLOWED = "run it as the owner, or change the permissions"
_REMEDIES = {
    errno.EACCES: _NOT_ALLOWED,
    errno.EPERM: _NOT_ALLOWED,
    errno.EROFS: "it is on a read-only file system; copy the log to one that can be written",
    errno.ENOSPC: "make room on the disk and run it again",
    errno.EDQUOT: "make room within the quota and run it again",
    errno.EMFILE: "allow more open files, as with `ulimit -n 4096`",
}


class Terminated(KeyboardInterrupt):
    """SIGTERM: it unwinds the stack as Ctrl-C does, also out of code that is a user's."""


class ReportingGroup(click.Group):
    """The root group: runs a command and reports how it failed."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Read the words before the command; what is wrong with them is reported alike."""
        try:
            return super().make_context(*args, **kwargs)
        except click.exceptions.NoArgsIsHelpError:
            raise
        except click.UsageError as error:
            wrong_usage(error)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a failure becomes lines on stderr and an exit code."""
        if {"-h", "--help"} & set(ctx.args):
            ctx.meta[HELP] = True
        try:
            with _terminated_cleanly(), results_only():
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
        except Terminated:
            raise click.exceptions.Exit(TERMINATED) from None
        except (KeyboardInterrupt, click.Abort):
            raise click.exceptions.Exit(INTERRUPTED) from None
        except Exception as error:
            failed(error, verbose=VERBOSE in ctx.meta)


def failed(error: Exception, *, verbose: bool) -> NoReturn:
    """Print an error in its lines, then exit."""
    if verbose:
        click.echo(_traceback(error), err=True, nl=False)
    if isinstance(error, OSError):
        error = refused(error)
    if isinstance(error, HeadwaterError):
        tell(error)
    else:
        reason = str(error).strip().splitlines()
        say("error", f"{type(error).__name__}: {reason[0]}" if reason else type(error).__name__)
        if not verbose:
            say(
                "hint",
                "this error was not expected; run the same command with --verbose to see its traceback",
            )
    raise click.exceptions.Exit(WRONG_USAGE if isinstance(error, UsageError) else 1) from None


def tell(error: HeadwaterError) -> None:
    """Print an error in its lines."""
    say("error", error.message)
    say("detail", error.detail)
    say("hint", error.hint)


def wrong_usage(error: click.UsageError) -> NoReturn:
    """Print what is wrong with a command line, then exit with 2."""
    message, hint = wording.usage_error(error)
    say("error", message)
    say("hint", hint)
    raise click.exceptions.Exit(WRONG_USAGE) from None


def refused(error: OSError) -> HeadwaterError:
    """Return what the operating system did not let happen, as an error of ours."""
    where = f'cannot use "{error.filename}"' if error.filename else "the operating system refused"
    hint = _REMEDIES.get(error.errno) if error.errno is not None else None
    said = os.strerror(error.errno) if error.errno else str(error).strip().split("\n")[0]
    detail = said or type(error).__name__
    return HeadwaterError(where, detail=detail[:1].lower() + detail[1:], hint=hint)


def _traceback(error: Exception) -> str:
    """Return where it happened, without what: that follows in its own lines."""
    text = "".join(traceback.format_exception(error))
    return text.removesuffix("".join(traceback.format_exception_only(error)))


def say(kind: str, text: str | None) -> None:
    """Print what is to be said about a failure on stderr, a line for each line of it."""
    colour = {"error": "red", "alert": "red", "warning": "yellow"}.get(kind)
    for line in (text or "").splitlines():
        click.echo(f"{click.style(f'{kind}:', fg=colour, bold=colour is not None)} {line}", err=True)


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
    raise Terminated


def _abandon_stdout() -> None:
    """Point stdout at nothing, or Python would complain about the closed pipe when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
