"""Events of a server that is followed, as typed values.

Invariant: ``last`` is the id of the newest event that was yielded or passed over, never of one to come; who
goes on from it misses and repeats nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from headwater.client.errors_of_server import RequestRefused, lost

ChangeKind = Literal["snapshot", "row", "ready", "insert", "update", "delete", "rebuilt"]


@dataclass(frozen=True)
class LiveChange:
    """A change of a view that is followed, or what was said around it.

    ``kind`` is ``insert``, ``update`` or ``delete`` for a change. With a snapshot come ``snapshot`` (forget
    the rows so far), a ``row`` for each row, and ``ready`` (the rows are whole). ``rebuilt`` says that the
    view was computed anew: with a snapshot the rows follow, without one they have to be read again.
    """

    kind: ChangeKind
    sequence: int | None = None
    key: tuple[Any, ...] = ()
    old: Mapping[str, Any] | None = None
    new: Mapping[str, Any] | None = None
    """The row after, also of a ``row``."""
    batch: int | None = None
    id: str | None = None
    """What to follow from, to go on after it."""


@dataclass(frozen=True)
class LiveRecord:
    """A record of a topic that is followed."""

    partition: int
    offset: int
    received: str
    key: tuple[Any, ...] | None
    value: Any
    headers: Mapping[str, str] | None
    deleted: bool
    id: str


@dataclass(frozen=True)
class ServerEvent:
    """An event as it stands in the stream."""

    name: str
    data: Any
    id: str | None


class EventParser:
    """Makes events of the text of a stream."""

    def __init__(self, last: str | None = None):
        self.last = last
        self._fields: dict[str, str] = {}
        self._begun = ""

    def feed(self, text: str) -> Iterator[ServerEvent]:
        """Take some text, cut anywhere; yield the events that it ends.

        Only a newline ends a line: JSON may have the other characters that end one for ``str.splitlines``.
        """
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            yield from self._line(line)

    def _line(self, line: str) -> Iterator[ServerEvent]:
        if line:
            name, _, value = line.partition(":")
            self._fields[name] = value.removeprefix(" ")
            return
        fields, self._fields = self._fields, {}
        if "data" in fields:
            yield ServerEvent(fields.get("event", "message"), orjson.loads(fields["data"]), fields.get("id"))
        self.last = fields.get("id", self.last)


def change_of(event: ServerEvent, snapshot: bool) -> LiveChange | None:
    """Return an event of a view; None for one that is nobody's business but the connection's."""
    data = event.data
    match event.name:
        case "change":
            return LiveChange(
                data["kind"],
                data["sequence"],
                tuple(data["key"]),
                data["old"],
                data["new"],
                data["batch"],
                event.id,
            )
        case "row":
            return LiveChange("row", new=data)
        case "snapshot" | "ready" | "rebuilt":
            return LiveChange(event.name, data["sequence"], id=event.id)
        case "lost" if not snapshot:
            raise lost(data)
        case "failed":
            raise _failed(data)
    return None


def record_of(event: ServerEvent) -> LiveRecord | None:
    """Return an event of a topic; None for one that is nobody's business but the connection's."""
    if event.name == "lost":
        raise lost(event.data)
    if event.name == "failed":
        raise _failed(event.data)
    if event.name != "record":
        return None
    data = event.data
    return LiveRecord(
        data["partition"], data["offset"], data["received"],
        None if data["key"] is None else tuple(data["key"]),
        data["value"], data["headers"], data["deleted"], str(event.id),
    )  # fmt: skip


def _failed(data: Mapping[str, Any]) -> RequestRefused:
    return RequestRefused(500, str(data.get("title")), detail=data.get("detail"), hint=data.get("hint"))
