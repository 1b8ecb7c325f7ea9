"""What a failed query means to a user: whose code, which line, what it said.

Spark's own message is pages long; the part that matters is the end of the Python traceback in it.
Invariant: no stack trace of Spark reaches a user as the message.
"""

from __future__ import annotations

import re
import traceback

from headwater import errors
from headwater.errors import HeadwaterError, LogUnavailable, PipelineError
from headwater.pipeline.node import Node
from headwater.stores import disk

_RAISED = re.compile(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception|Interrupt|Warning|Exit)): ?(.*)$", re.MULTILINE)
_OURS = re.compile(r"^headwater\.errors\.(\w+): (.*(?:\n(?:detail|hint): .*)*)$", re.MULTILINE)
"""One of our own errors, as a traceback ends with it: of Spark's planner, or of a worker that reads."""
_LINE = re.compile(r'File "([^"]+)", line (\d+)')


def error_from_text(node: Node, text: str) -> HeadwaterError:
    """Return the error of a query that failed with Spark's message."""
    python = text.rpartition("Traceback (most recent call last)")[2] or text
    away = _log_away(python)
    if away is not None:
        return away
    raised = _RAISED.findall(python)
    lines = [int(line) for file, line in _LINE.findall(python) if file == node.file]
    location = f"{node.location.rpartition(':')[0]}:{lines[-1]}" if lines else node.location
    if not raised:
        return PipelineError(f"{node.title} failed", detail=_first(text), location=node.location)
    kind, words = raised[-1]
    return PipelineError(f"{node.title} failed: {kind}", detail=words.strip() or None, location=location)


def _log_away(python: str) -> LogUnavailable | None:
    """Return the error that the log is away, if a traceback has it: no fault of the node, and it may pass."""
    for kind, words in reversed(_OURS.findall(python)):
        known = getattr(errors, kind, None)
        if isinstance(known, type) and issubclass(known, LogUnavailable):
            message, *more = words.split("\n")
            told = dict(line.split(": ", 1) for line in more)
            return known(message, detail=told.get("detail"), hint=told.get("hint"))
    return None


def error_from_exception(node: Node, error: BaseException) -> HeadwaterError:
    """Return the error of a node that failed with an exception, in a worker of Spark's or in the driver."""
    if disk.is_full(error):
        return disk.full(f"the state of {node.title}", detail=_full(str(error)))
    text = str(error)  # a worker's traceback is in the message
    return error_from_text(
        node, text if "Traceback (most" in text else "".join(traceback.format_exception(error))
    )


def one_line(node: Node, error: BaseException) -> str:
    """Return what an exception says, in one line."""
    return line_of(error_from_exception(node, error))


def line_of(error: HeadwaterError) -> str:
    """Return what an error of a node says, in one line."""
    return f"{error.message.rpartition(': ')[2]}: {error.detail}"


def _full(text: str) -> str:
    """Return the line that names the full disk; a worker's is pages long."""
    lines = [line.strip() for line in text.splitlines() if disk.is_full(OSError(line))]
    return lines[-1][:300] if lines else _first(text)


def _first(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:300] if lines else "Spark gave no reason"
