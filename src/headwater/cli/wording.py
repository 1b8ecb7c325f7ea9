"""Sentences that several commands say, and what click says about a wrong command line in our words.

Invariant: one lower-case line with names in double quotes, and a hint that says how to go on.
"""

from __future__ import annotations

import re

import click

_EXTRA = re.compile(r"got unexpected extra arguments? \((.*)\)")

NOT_YET = "has not processed anything yet"
OWN_LOG = "a pipeline uses the log that its file names: Pipeline(name, log=…)"
_SHORT = {"-V": "--version", "-v": "--verbose"}


def usage_error(error: click.UsageError) -> tuple[str, str]:
    """Return what is wrong with a command line, and the hint."""
    if isinstance(error, click.NoSuchOption):
        message, close = f'no option "{error.option_name}"', error.possibilities
    elif isinstance(error, click.exceptions.NoSuchCommand):
        message, close = f'no command "{error.command_name}"', error.possibilities
    else:
        message, close = _plain(error), None
    if isinstance(error, click.NoSuchOption) and error.option_name in _SHORT:
        close = [_SHORT[error.option_name]]
    if isinstance(error, click.NoSuchOption) and error.option_name == "--log":
        return message, OWN_LOG
    if not close and error.ctx is not None and error.ctx.parent is None and (moved := _misplaced(error)):
        return message, moved
    command = error.ctx.command_path if error.ctx else "headwater"
    return message, f'did you mean "{close[0]}"?' if close else f"see `{command} --help`"


def _misplaced(error: click.UsageError) -> str | None:
    """Return the hint for what stands before the command and belongs behind it."""
    if isinstance(error, click.NoSuchOption):
        return "an option of a command follows the command, as in `headwater consume orders --format ndjson`"
    if isinstance(error, click.exceptions.NoSuchCommand):
        return "the command comes first, as in `headwater consume orders`; `headwater --help` lists them"
    return None


def _plain(error: click.UsageError) -> str:
    text = error.format_message().strip().rstrip(".")
    text = text[:1].lower() + text[1:]
    text = _EXTRA.sub(r'unexpected argument "\1"', text)
    text = re.sub(r"is not a valid integer( range)?$", "is not a whole number", text)
    text = re.sub(r"is not a valid float( range)?$", "is not a number", text)
    text = re.sub(r"is not in the range x>=(\d+)$", r"is less than \1", text)
    text = re.sub(r"'\[?([^'\]]*)\]?'", r'"\1"', text)
    return re.sub(r": (File|Directory|Path) ", lambda kind: kind[0].lower(), text)
