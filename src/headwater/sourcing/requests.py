"""Request ids: what came of each command that was sent under one, found by a tag of its records.

The append of a command has the condition that nothing has its tag, so of several that are sent under one id
the log takes the first. Invariant: a request id of a key stands for one command, and has one reply.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from headwater.errors import Rejected, UsageError
from headwater.log.conditional import ConditionalProducer
from headwater.log.expected_version import Condition
from headwater.log.position import Position
from headwater.sourcing.event_schema import EventSchema
from headwater.sourcing.reply import Reply
from headwater.sourcing.timer import TIMER_ID
from headwater.topic import Topic

MOST_BYTES = 200
"""How long a request id may be."""


class StoredReply(NamedTuple):
    """What is stored of a request."""

    reply: Reply
    command: str
    """The name of the command that was carried out, or rejected."""
    rejection: str | None


@dataclass(frozen=True)
class StoredRequests:
    """The requests that the records of a decider's topic tell of."""

    producer: ConditionalProducer
    topic: Topic
    schema: EventSchema
    columns: Sequence[str]

    def is_stored(self, key: str, request_id: str) -> bool:
        """Tell whether something came of a request, and was recorded."""
        return bool(self.producer.newest(key=key, tags=[tag(request_id)]))

    def find(self, key: str, request_id: str) -> StoredReply | None:
        """Return what is stored of a request."""
        found = [
            row
            for batch in self.producer.read(key=key, tags=[tag(request_id)], meta=True)
            for row in batch.select([*self.columns, "_offset", "_partition"]).to_pylist()
        ]
        if not found:
            return None
        version, number = found[-1]["_offset"] + 1, found[-1]["_partition"]
        position = Position(self.topic.name, {number: version}, self.topic.id)
        events = tuple(event for row in found for event in self.schema.events(row))
        reply = Reply(events, version, position, repeated=True)
        return StoredReply(reply, found[0]["command"], found[0]["rejection"])

    def first_reply(self, key: str, command: Any, request_id: str) -> Reply:
        """Return the reply to a request that is stored, or raise its rejection; refuse another command."""
        found = self.find(key, request_id)
        assert found is not None, "it is stored"
        if found.command != type(command).__name__:
            raise UsageError(
                f'request id "{request_id}" of "{key}" was used for another command',
                detail=f"{found.command} was carried out under it, and {type(command).__name__} is asked for",
                hint="choose a new one for every command, and the same one only to send it again",
            )
        if found.rejection is not None:
            raise Rejected(found.rejection)
        return found.reply


def check(request_id: str) -> None:
    """Refuse what is no request id of a caller's."""
    if not isinstance(request_id, str) or not 0 < len(request_id.encode()) <= MOST_BYTES:
        raise UsageError(f"a request id is a text of 1 to {MOST_BYTES} bytes, not {request_id!r:.80}")
    if request_id.startswith(TIMER_ID):
        raise UsageError(
            f'a request id that begins with "{TIMER_ID}" is that of a timer', hint="choose another"
        )


def tag(request_id: str) -> str:
    """Return the tag of the records of a request."""
    return f"request:{request_id}"


def once(key: str, request_id: str) -> Condition:
    """Return the condition that nothing has come of a request yet."""
    return Condition(key, (tag(request_id),))
