"""What comes of a command: the events that it led to, and where they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from headwater.log.position import Position


@dataclass(frozen=True)
class Reply:
    """A command that was accepted: its events, and how far its aggregate has got with them."""

    events: tuple[Any, ...]
    """What has happened; nothing, if the command asked for what was so already."""
    version: int
    """The offset behind the last event of the aggregate, as of this command."""
    position: Position
    """For ``views.wait_for``: a view that has got there shows what the command did."""
    repeated: bool = field(default=False, compare=False)
    """Whether the command had been carried out before, under its request id."""


@dataclass(frozen=True)
class HandledReply:
    """A command that a handler of a pipeline has accepted."""

    events: tuple[Any, ...]
    """What has happened; nothing, if the command asked for what was so already."""
    event_count: int
    """How many events the aggregate had with those of this command: the first one makes it 1."""
    position: Position
    """In the stream of replies, for ``views.wait_for``: a view that has got there shows what it did."""
    repeated: bool = field(default=False, compare=False)
    """Whether the command had been carried out before, under its request id."""


@dataclass(frozen=True)
class RecordedEvent:
    """An event of an aggregate's history, and the state after it."""

    event: Any
    state: Any
    version: int
    """The offset behind it."""
    recorded_at: datetime
    command: str | None
    """The name of the command that led to it."""
    request_id: str | None
