"""What a pipeline declares: sources, tables and nodes, each with the place where the user wrote it.

Invariant: a declaration never changes, and knows no other; whether it fits the others is for
``graph.py`` to say.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import pyarrow as pa

Kind = Literal["source", "table", "stream", "view", "sink"]
OnError = Literal["stop", "dead_letter"]
ON_ERROR: tuple[str, ...] = get_args(OnError)


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


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """A named part of a pipeline."""

    name: str
    kind: Kind
    file: str
    line: int
    key: tuple[str, ...] = ()
    event_time: str | None = None

    @property
    def place(self) -> str:
        """The user's file and line, as messages name it."""
        return str(SourceLine(self.file, self.line))

    @property
    def title(self) -> str:
        """The kind and the name, as messages name it."""
        return f'{self.kind} "{self.name}"'


@dataclass(frozen=True, kw_only=True)
class Source(Declaration):
    """A topic of events that comes from outside."""

    kind: Kind = field(default="source", init=False)
    schema: pa.Schema
    topic: str
    lateness: timedelta
    """How long after its time an event is waited for."""
    idle: timedelta | None = None
    """How long a silent producer is waited for, and all of them; None for a while, and for ever."""
    max_ahead: timedelta | None = None
    """How far ahead of its receipt an event may be and move the clock; None where nothing is said."""


@dataclass(frozen=True, kw_only=True)
class Table(Declaration):
    """A compacted topic: the newest row of each key, changed from outside."""

    kind: Kind = field(default="table", init=False)
    schema: pa.Schema
    topic: str
    idle: timedelta | None = None
    """How long it is waited for though it does not change; None for ever."""


@dataclass(frozen=True, kw_only=True)
class Node(Declaration):
    """A function of its upstreams, or a SQL query, whose rows become a stream, a view, or go to a sink."""

    upstreams: tuple[str, ...] = ()
    """Names, in the order of the function's parameters or of the query."""
    function: Callable[..., Any] | None = None
    statement: str | None = None
    """The query, where there is no function."""
    description: str = ""
    on_error: OnError = "stop"
    topic: str | None = None
    """The derived topic, of a stream."""
    partitions: int | None = None
    """Of the derived topic; None leaves them to the engine."""
    store: str | None = field(default=None, repr=False)
    """Where a view is kept; None means the pipeline's own place. It may hold a password."""
    order: str | None = None
    """The column in whose order a view is read too."""
    target: object = None
    """What a sink writes to."""

    @property
    def computed_anew(self) -> str:
        """What a user does to have it computed anew."""
        if self.kind == "view":
            return f"run `headwater rebuild {Path(self.file).name} {self.name}` to compute it anew"
        return f"give the {self.kind} another name, under which it begins anew"


def caller() -> SourceLine:
    """Return the line that called the function which calls this."""
    frame = sys._getframe(2)
    return SourceLine(_whole(frame.f_code.co_filename), frame.f_lineno)


def origin(function: Callable[..., Any]) -> SourceLine:
    """Return the line where a function begins, decorators included."""
    code = function.__code__
    return SourceLine(_whole(code.co_filename), code.co_firstlineno)


def _whole(file: str) -> str:
    return file if file.startswith("<") else os.path.abspath(file)
