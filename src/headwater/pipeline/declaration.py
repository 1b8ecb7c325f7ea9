"""What a pipeline declares: topics that something else writes, and nodes, each with the user's line.

What others ask of a declaration is answered here, by its type: whether it can be read, verified or
rebuilt, and what a user is told about it. A new kind is a new type; nobody asks for the word ``kind``
but to show it. Invariant: a declaration never changes, and knows no other; whether it fits the others
is for ``graph.py`` to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import ClassVar, Self

import pyarrow as pa

from headwater.pipeline.source_line import SourceLine
from headwater.topic import Cleanup, Topic
from headwater.wire_format import JSON

IDLE = timedelta(seconds=10)
MAX_AHEAD = timedelta(minutes=10)
"""More than a clock drifts that is looked after, and less than any mistake in a time zone."""


@dataclass(frozen=True)
class InputTiming:
    """How an input tells time."""

    lateness: timedelta = timedelta()
    """How long after its time an event is waited for."""
    idle: timedelta | None = None
    """How long a silent producer is waited for, and all of them; None for a while, and for ever."""
    max_ahead: timedelta | None = None
    """How far ahead of its receipt an event may be and move the clock; None where nothing is said."""


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """A named part of a pipeline."""

    kind: ClassVar[str]
    """The word for its type, as messages and drawings have it."""
    external: ClassVar[bool] = False
    """Whether its rows come from outside of the pipeline."""
    needs_key: ClassVar[bool] = False
    """Whether it cannot be declared without a key."""

    name: str
    file: str
    line: int
    key: tuple[str, ...] = ()

    @classmethod
    def title_of(cls, name: object) -> str:
        """Return the title that one of a name has."""
        return f'{cls.kind} "{name}"'

    @property
    def title(self) -> str:
        """The kind and the name, as messages name it."""
        return self.title_of(self.name)

    @property
    def verifiable(self) -> bool:
        """Whether it can be computed again as a batch and compared with what is stored."""
        return False

    @property
    def has_versions(self) -> bool:
        """Whether a version of it can be built beside the one in force: whether it can be rebuilt."""
        return False

    @property
    def source_line(self) -> SourceLine:
        """The line of the user's file that declares it."""
        return SourceLine(self.file, self.line)

    @property
    def location(self) -> str:
        """The user's file and line, as messages name it."""
        return str(self.source_line)

    @property
    def description(self) -> str:
        """What its user says about it."""
        return ""

    @property
    def upstreams(self) -> tuple[str, ...]:
        """The names of what it reads."""
        return ()

    @property
    def readable_topic(self) -> str | None:
        """The topic from which a node can read it, if there is one."""
        return None

    @property
    def written_topic(self) -> str | None:
        """The topic that the pipeline writes for it, if there is one."""
        return None

    @property
    def timing(self) -> InputTiming | None:
        """How its topic tells time; None where the pipeline writes the clock into the topic, as marks."""
        return None

    @property
    def unreadable_hint(self) -> str:
        """What a user does to have it read, where it has no topic to read."""
        return f'make "{self.name}" a stream'

    @property
    def recompute_hint(self) -> str | None:
        """What a user does to have it computed anew, if it is computed."""
        return None

    def resolved(self, names: Mapping[str, str]) -> Self:
        """Return it with its upstreams as they are spelled; ``names`` has them by their small letters."""
        return self

    def stored_in_home(self) -> Self:
        """Return it as it is where log and results are kept in the pipeline's home."""
        return self


@dataclass(frozen=True, kw_only=True)
class InputTopic(Declaration):
    """A topic that something else writes."""

    external: ClassVar[bool] = True
    cleanup: ClassVar[Cleanup] = "delete"

    declared: Topic
    """What it reads, as the user has declared it."""
    timing: InputTiming = InputTiming()

    @property
    def topic(self) -> str:
        """The name of the topic."""
        return self.declared.name

    @property
    def schema(self) -> pa.Schema:
        """The columns of its records."""
        return self.declared.schema

    @property
    def event_time(self) -> str | None:
        """The column that says when an event happened, of the records or computed."""
        return self.declared.event_time

    @property
    def readable_topic(self) -> str:
        """The topic itself."""
        return self.topic

    @property
    def compacted(self) -> bool:
        """Whether only the newest row of each key counts."""
        return self.cleanup == "compact"

    def stored_in_home(self) -> Self:
        """Return it as it is on a log that keeps typed rows."""
        return replace(self, declared=replace(self.declared, format=JSON, key_format=None))


@dataclass(frozen=True)
class CapturedOutboxFrom:
    """The outbox of a captured database whose rows are the events of a source."""

    capture: str
    table: str
    event: str | None = None
    """The column that holds an event as JSON; without one the table's columns are the event's."""
    headers: tuple[str, ...] = ()
    """The columns that become headers of the record."""
    delete: bool = False
    """Whether rows are deleted from the outbox when the log has them."""


@dataclass(frozen=True, kw_only=True)
class Source(InputTopic):
    """A topic of events that comes from outside."""

    kind: ClassVar[str] = "source"

    captured: CapturedOutboxFrom | None = None
    """What fills the topic, where a capture of this pipeline does."""

    @property
    def upstreams(self) -> tuple[str, ...]:
        """The capture that fills it, if one does."""
        return () if self.captured is None else (self.captured.capture,)


@dataclass(frozen=True)
class CapturedFrom:
    """The table of a captured database that a table of a pipeline follows."""

    capture: str
    table: str
    history: bool = False
    """Whether every change is kept too, in the topic ``TOPIC.changes``."""


@dataclass(frozen=True, kw_only=True)
class Table(InputTopic):
    """A compacted topic: the newest row of each key, changed from outside."""

    kind: ClassVar[str] = "table"
    needs_key: ClassVar[bool] = True
    cleanup: ClassVar[Cleanup] = "compact"

    captured: CapturedFrom | None = None
    """What fills the topic, where a capture of this pipeline does."""

    @property
    def upstreams(self) -> tuple[str, ...]:
        """The capture that fills it, if one does."""
        return () if self.captured is None else (self.captured.capture,)
