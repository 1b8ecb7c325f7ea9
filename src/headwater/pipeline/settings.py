"""What a user gives to a declaration beside its name and its code, as given, and read from there.

One type of settings for each type of node: it makes the node. Invariant: values that are no setting at
all are refused here, with the title of what they were given to.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import ClassVar, Protocol

from headwater import expressions
from headwater.durations import MICROSECOND, interval
from headwater.errors import PipelineError, UsageError, nearest
from headwater.names import parts
from headwater.pipeline.declaration import InputTiming
from headwater.pipeline.node import Node, NodeCode, OnError, SinkNode, StreamNode, ViewNode
from headwater.pipeline.source_line import SourceLine
from headwater.views.opening import check_store
from headwater.wire_format import JSON

Key = str | Sequence[str] | None


@dataclass(frozen=True)
class FormatSettings:
    """Of a topic that another program writes: how its records are written."""

    format: str = JSON
    key_format: str | None = None


@dataclass(frozen=True)
class TopicSettings:
    """Of a topic that is read: its columns with a meaning, and its name where it is not the declared one."""

    key: Key = None
    event_time: str | None = None
    topic: str | None = None
    metadata: str | Sequence[str] = ()
    producer: str | None = None
    formats: FormatSettings = FormatSettings()


@dataclass(frozen=True)
class TimingSettings:
    """Of an input: how it tells time."""

    lateness: str | timedelta | None = None
    idle: str | timedelta | None = None
    max_ahead: str | timedelta | None = None

    @property
    def first_set(self) -> str | None:
        """The name of the first setting that has a value, if one has."""
        return next((field.name for field in fields(self) if getattr(self, field.name) is not None), None)

    def read(self) -> InputTiming:
        """Return them as lengths of time."""
        return InputTiming(
            lateness=timedelta() if self.lateness is None else length_or_zero(self.lateness),
            idle=None if self.idle is None else interval(self.idle),
            max_ahead=None if self.max_ahead is None else interval(self.max_ahead),
        )


@dataclass(frozen=True)
class InputSettings:
    """What a user gives to a source or a table: its topic's settings, and how it tells time."""

    topic: TopicSettings
    timing: TimingSettings


@dataclass(frozen=True)
class Origin:
    """Whose settings they are: the name of a node, the line that declares it, and its pipeline."""

    name: str
    line: SourceLine
    pipeline: str


class NodeSettings(Protocol):
    """The settings of a type of node."""

    node_type: ClassVar[type[Node]]

    def node(self, origin: Origin, code: NodeCode) -> Node:
        """Return the node that has them; nothing is checked but what cannot be read."""

    def check(self, title: str) -> None:
        """Refuse values that only this type of node has, where they are wrong."""


@dataclass(frozen=True)
class StreamSettings:
    """Of a stream: its topic's."""

    node_type: ClassVar[type[Node]] = StreamNode

    key: Key = None
    event_time: str | None = None
    partitions: int | None = None
    on_error: OnError = "stop"

    def node(self, origin: Origin, code: NodeCode) -> StreamNode:
        """Return the stream; its topic is ``PIPELINE.NODE``."""
        return StreamNode(
            name=origin.name,
            file=origin.line.file,
            line=origin.line.line,
            code=code,
            key=key_columns(StreamNode.title_of(origin.name), self.key),
            topic=f"{origin.pipeline}.{origin.name}",
            event_time=self.event_time,
            partitions=self.partitions,
            on_error=self.on_error,
        )

    def check(self, title: str) -> None:
        """Refuse a number of partitions that no topic has, and an event time that names no column."""
        count = self.partitions
        if count is not None and (type(count) is not int or not 1 <= count <= 1024):
            raise PipelineError(f"{title} has 1 to 1024 partitions, not {count!r:.60}")
        if not _is_column(self.event_time):
            raise PipelineError(f"event_time of {title} cannot be {self.event_time!r:.60}")


@dataclass(frozen=True)
class ViewSettings:
    """Of a view: how its rows are kept."""

    node_type: ClassVar[type[Node]] = ViewNode

    key: Key = None
    order: str | None = None
    on_error: OnError = "stop"
    store: str | None = None

    def node(self, origin: Origin, code: NodeCode) -> ViewNode:
        """Return the view."""
        return ViewNode(
            name=origin.name,
            file=origin.line.file,
            line=origin.line.line,
            code=code,
            key=key_columns(ViewNode.title_of(origin.name), self.key),
            store=self.store,
            order=self.order,
            on_error=self.on_error,
        )

    def check(self, title: str) -> None:
        """Refuse a store that there is not, and an order that names no column."""
        if self.store is not None:
            check_store(self.store)
        if not _is_column(self.order):
            raise PipelineError(
                f"order of {title} cannot be {self.order!r:.60}", hint="name one column of its result"
            )


@dataclass(frozen=True)
class SinkSettings:
    """Of a sink: where its rows go."""

    node_type: ClassVar[type[Node]] = SinkNode

    target: object
    on_error: OnError = "stop"

    def node(self, origin: Origin, code: NodeCode) -> SinkNode:
        """Return the sink."""
        return SinkNode(
            name=origin.name,
            file=origin.line.file,
            line=origin.line.line,
            code=code,
            target=self.target,
            on_error=self.on_error,
        )

    def check(self, title: str) -> None:
        """Refuse nothing: a target is looked at when it is to be written to."""


@dataclass(frozen=True)
class QuerySettings:
    """Of a query: those of a stream or of a view, whichever it becomes."""

    key: Key = None
    event_time: str | None = None
    partitions: int | None = None
    on_error: OnError = "stop"
    store: str | None = None

    def of_kind(self, kind: str, name: str) -> NodeSettings:
        """Return the settings of the node that the query becomes; refuse those which it has not."""
        if kind == StreamNode.kind:
            self._refuse("store", StreamNode.title_of(name), ViewNode)
            return StreamSettings(self.key, self.event_time, self.partitions, self.on_error)
        if kind == ViewNode.kind:
            self._refuse("partitions", ViewNode.title_of(name), StreamNode)
            self._refuse("event_time", ViewNode.title_of(name), StreamNode)
            return ViewSettings(self.key, on_error=self.on_error, store=self.store)
        hint = nearest(str(kind), (ViewNode.kind, StreamNode.kind))
        raise PipelineError(f'kind is "view" or "stream", not "{kind}"', hint=hint)

    def _refuse(self, setting: str, title: str, owner: type[Node]) -> None:
        if getattr(self, setting) is not None:
            raise PipelineError(f"{title} takes no {setting}", hint=f"only a {owner.kind} has one")


def key_columns(title: str, key: Key) -> tuple[str, ...]:
    """Read ``"a,b"``, ``["a", "b"]`` or None."""
    if key is None:
        return ()
    names = (expressions.split if "(" in key else parts)(key) if isinstance(key, str) else key
    if not isinstance(names, Sequence) or not all(isinstance(name, str) and name for name in names):
        raise PipelineError(
            f"key of {title} cannot be {key!r:.60}", hint='name its columns, as in key="shop,day"'
        )
    if len(set(names)) < len(names):
        raise PipelineError(f"key of {title} has a column twice", detail=", ".join(names))
    return tuple(names)


def length_or_zero(text: str | timedelta) -> timedelta:
    """Read an interval that may be zero, which ``interval`` refuses."""
    if text == timedelta():
        return timedelta()
    with suppress(UsageError):
        if isinstance(text, str) and interval(f"{text} 1 microsecond") == MICROSECOND:
            return timedelta()
    return interval(text)


def _is_column(name: object) -> bool:
    return name is None or (isinstance(name, str) and name != "")
