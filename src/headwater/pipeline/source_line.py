"""The line of a user's file where something is declared, and errors that name it.

Invariant: an error that leaves ``errors_at`` names a line, and keeps the one that it had.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from headwater.errors import HeadwaterError, PipelineError


class SourceLine(NamedTuple):
    """A line of a user's file."""

    file: str
    line: int

    def __str__(self) -> str:
        """Name it as short as it can be found from here."""
        try:
            return f"{Path(self.file).relative_to(Path.cwd())}:{self.line}"
        except (ValueError, OSError):  # elsewhere, or nobody knows where we are
            return f"{self.file}:{self.line}"


def caller() -> SourceLine:
    """Return the line that called the function which calls this."""
    frame = sys._getframe(2)
    return SourceLine(_absolute(frame.f_code.co_filename), frame.f_lineno)


def origin(function: Callable[..., Any]) -> SourceLine:
    """Return the line where a function begins, decorators included."""
    code = function.__code__
    return SourceLine(_absolute(code.co_filename), code.co_firstlineno)


@contextmanager
def errors_at(line: SourceLine) -> Iterator[None]:
    """Let every error of the block name the user's line."""
    try:
        yield
    except HeadwaterError as error:
        if isinstance(error, PipelineError) and error.location:
            raise
        raise PipelineError(error.message, location=str(line), detail=error.detail, hint=error.hint) from None


def _absolute(file: str) -> str:
    return file if file.startswith("<") else os.path.abspath(file)
