"""Request ids: what came of each command that was sent under one, found by a tag of its records.

The append of a command has the condition that nothing has its tag, so of several that are sent under one id
the log takes the first. Invariant: a request id of a key stands for one command, and has one reply.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
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


PROCESS_ID = "process:"
"""How the request ids of process managers begin."""
_CONTENT = "#"
_OF_PROCESS = re.compile(rf"{PROCESS_ID}.*{_CONTENT}[0-9a-f]{{12}}", re.DOTALL)


class StoredReply(NamedTuple):
    """What is stored of a request."""

    reply: Reply
    command: str
    """The name of the command that was carried out, or rejected."""
    rejection: str | None
    request_id: str
    """As it was given then: the end of one of a process tells what was in the command."""


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
            for row in batch.select([*self.columns, "_offset", "_partition"]).to_pylist(
                maps_as_pydicts="strict"
            )
        ]
        if not found:
            return None
        version, number = found[-1]["_offset"] + 1, found[-1]["_partition"]
        position = Position(self.topic.name, {number: version}, self.topic.id)
        events = tuple(event for row in found for event in self.schema.events(row))
        reply = Reply(events, version, position, repeated=True)
        return StoredReply(reply, found[0]["command"], found[0]["rejection"], found[0]["request_id"])

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
        if request_id.startswith(PROCESS_ID) and found.request_id != request_id:
            raise _replaced(key, command, request_id)
        if found.rejection is not None:
            raise Rejected(found.rejection)
        return found.reply


def check(request_id: str) -> None:
    """Refuse what is no request id of a caller's."""
    if not isinstance(request_id, str) or not 0 < len(request_id.encode()) <= MOST_BYTES:
        raise UsageError(f"a request id is a text of 1 to {MOST_BYTES} bytes, not {request_id!r:.80}")
    for start, whose in ((TIMER_ID, "a timer"), (PROCESS_ID, "a process manager")):
        if request_id.startswith(start) and not _OF_PROCESS.fullmatch(request_id):
            raise UsageError(
                f'a request id that begins with "{start}" is that of {whose}', hint="choose another"
            )


def tag(request_id: str) -> str:
    """Return the tag of the records of a request."""
    if request_id.startswith(PROCESS_ID):
        request_id = request_id.rpartition(_CONTENT)[0] or request_id
    return f"request:{request_id}"


def with_content(id: str, content: str) -> str:
    """Return the request id of a process's command: known by the first part, and told apart by the second."""
    room = MOST_BYTES - len(_CONTENT) - len(content)
    if len(id.encode()) > room:  # names may be long
        id = PROCESS_ID + sha256(id.encode()).hexdigest()
    return f"{id}{_CONTENT}{content}"


def once(key: str, request_id: str) -> Condition:
    """Return the condition that nothing has come of a request yet."""
    return Condition(key, (tag(request_id),))


def _replaced(key: str, command: Any, request_id: str) -> UsageError:
    return UsageError(
        f'{type(command).__name__} for "{key}" is not the command that was carried out in its place',
        detail=f'request id "{request_id}": the process has handled its event before, and returned another '
        "command of that kind for that key then",
        hint="return new commands of a kind and key behind those that were there, or name them, as in "
        'Send(…, id="bonus"); what was carried out is corrected by a command of its own',
    )
