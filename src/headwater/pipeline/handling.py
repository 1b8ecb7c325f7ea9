"""A decider as parts of a pipeline: a source of commands, a stream of replies, and one of events.

Invariant: the parts are ordinary declarations, so that all that holds for sources and streams holds for them;
but for the commands' topic, which must keep its number of partitions: the order of a key is that of its
partition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from headwater.errors import PipelineError, nearest
from headwater.pipeline import declaring
from headwater.pipeline.declaration import Source
from headwater.pipeline.node import Node, NodeCode, OnError
from headwater.pipeline.settings import (
    InputSettings,
    Origin,
    QuerySettings,
    StreamSettings,
    TimingSettings,
    TopicSettings,
)
from headwater.pipeline.source_line import SourceLine, errors_at

Answer = Callable[[Any, Mapping[str, Any]], Any]
"""From the state of a key and a question's arguments to what JSON can hold."""


class CommandHandling(Protocol):
    """How commands are decided."""

    @property
    def command_ddl(self) -> str:
        """The columns of commands, as Spark DDL."""

    @property
    def user_functions(self) -> tuple[Callable[..., Any], ...]:
        """The user's functions that it calls."""

    def check(self) -> None:
        """Refuse settings that a node cannot carry out."""

    def replies(self, commands: Any, answers: Mapping[str, Answer]) -> Any:
        """Return the replies to a DataFrame of commands."""

    def events_query(self, replies: str) -> str:
        """Return the query that makes events of replies."""


class CommandDecider(Protocol):
    """What decides commands: a ``headwater.sourcing.Decider``."""

    name: str

    @property
    def handling(self) -> CommandHandling:
        """How it does so in a node."""


def replies_name(decider: str) -> str:
    """Return the name of the stream of a decider's replies."""
    return f"{decider}_replies"


def source_of_commands(decider: CommandDecider, name: str, line: SourceLine) -> Source:
    """Return the source by which commands come, in order by key."""
    with errors_at(line):
        decider.handling.check()
    read = TopicSettings("key", "sent_at", metadata="_partition, _offset")
    settings = InputSettings(read, TimingSettings())
    return declaring.input_topic(Source, name, decider.handling.command_ddl, line, settings)


def stream_of_replies(
    decider: CommandDecider, commands: str, answers: Mapping[str, Answer], origin: Origin, on_error: OnError
) -> Node:
    """Return the node that decides."""

    def decide(**frames: Any) -> Any:
        return decider.handling.replies(frames[commands], answers)

    about = f"What the commands of {decider.name} were answered."
    functions = decider.handling.user_functions
    code = NodeCode((commands,), decide, None, about, functions, fixed_partitions=True)
    return declaring.coded(code, origin, StreamSettings("key", "sent_at", None, on_error))


def stream_of_events(decider: CommandDecider, replies: str, origin: Origin, on_error: OnError) -> Node:
    """Return the node that writes what has happened."""
    settings = QuerySettings("key", "recorded_at", None, on_error, None)
    return declaring.query("stream", decider.handling.events_query(replies), origin, settings)


def no_handler(name: object, known: list[str], line: SourceLine) -> PipelineError:
    """Return the error for a query of a decider that no handler was declared for."""
    return PipelineError(
        f'no handler of "{name!s:.80}"',
        location=str(line),
        hint=nearest(str(name), known) or "declare it before, as in shop.handler(account)",
    )
