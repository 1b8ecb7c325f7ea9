"""Sends commands and questions to the handler of a pipeline by the log, and hands over the replies.

One thread follows the replies for all who wait. Invariant: a command that was sent is in the log, whether its
reply was waited for or not: who hears none in time sends it again under the same request id, and it is
carried out once. A reply that tells of nothing carried out is for the sending that it answers alone: what was
sent again may be decided otherwise.
"""

from __future__ import annotations

import threading
import uuid
from concurrent.futures import Future
from contextlib import suppress
from datetime import datetime
from typing import Any, Protocol

import orjson

from headwater import durations
from headwater.closing import Closing
from headwater.errors import Behind, HeadwaterError, Rejected, UsageError
from headwater.log.interface import Log
from headwater.log.open import open as open_log
from headwater.log.position import Position
from headwater.pipeline.handling import replies_name
from headwater.pipeline.node import StreamNode
from headwater.pipeline.pipeline import Pipeline
from headwater.sourcing.command_schema import CommandSchema, Sending
from headwater.sourcing.event_schema import EventSchema
from headwater.sourcing.reply import HandledReply

TIMEOUT = 30.0
_Waiting = dict[tuple[str, str], dict[datetime, Future[dict[str, Any]]]]
"""Who waits, by key and request id, and by when each sent its command."""


class ConnectedDecider(Protocol):
    """What of a decider a client needs."""

    name: str
    schema: EventSchema
    command_schema: CommandSchema


class CommandClient(Closing):
    """Sends commands by the log; made by ``Decider.connect``, used from any thread."""

    def __init__(self, decider: ConnectedDecider, log: Log, commands: str, replies: str):
        self.log = log
        self._decider, self._commands, self._replies = decider, commands, log.topic(replies)
        self._producer = log.producer(commands)
        self._waiting: _Waiting = {}
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._failed: HeadwaterError | None = None
        batches = log.read(replies, start="latest", meta=True, follow=self._stop)
        self._thread = threading.Thread(target=self._follow, args=(batches,), daemon=True)
        self._thread.start()

    def execute(
        self, key: str, command: Any, *, request_id: str | None = None, timeout: float = TIMEOUT
    ) -> HandledReply:
        """Send a command, and return its reply when the handler has decided it.

        - ``key``: of the aggregate.
        - ``command``: an instance of one of the decider's commands.
        - ``request_id=None``: a text that the caller chooses, and uses again when it sends the same command
          again: it is carried out once for this key. A random one if None.
        - ``timeout=30.0``: how many seconds to wait for the reply.

        Raises ``Rejected`` if the decider says no, and ``Behind`` if no reply has come in time: the command
        is in the log then, and will be decided. The position of the reply is in the stream of replies:
        views of its pipeline, over the replies or over the events, can wait for it.
        """
        sending = _sending(key, request_id)
        row = self._send(self._decider.command_schema.row(command, sending), sending, timeout)
        if not row["accepted"]:
            raise Rejected(row["reason"])
        stored = ({**each, "key": key} for each in row["events"] or ())
        events = tuple(event for each in stored for event in self._decider.schema.events(each))
        position = Position(self._replies.name, {row["_partition"]: row["_offset"] + 1}, self._replies.id)
        return HandledReply(events, row["event_count"], position, row["repeated"])

    def ask(self, name: str, key: str, *, timeout: float = TIMEOUT, **arguments: Any) -> Any:
        """Ask a question of the pipeline, and return the answer: that of the state at this place in the log.

        - ``name``: of the question, as ``Pipeline.query`` declares it.
        - ``key``: of the aggregate.
        - ``timeout=30.0``: how many seconds to wait for the answer.
        - ``**arguments``: handed to the function that answers; what JSON can hold.

        Raises ``UsageError`` if the pipeline has no such question, and ``Behind`` if no answer has come in
        time.
        """
        sending = _sending(key, None)
        row = self._send(self._decider.command_schema.question(name, arguments, sending), sending, timeout)
        if not row["accepted"]:
            raise UsageError(row["reason"])
        return orjson.loads(row["answer"])

    def close(self) -> None:
        """Release the log. A ``with`` block does it at its end."""
        self._stop.set()
        self._thread.join()
        self._producer.close()
        self.log.close()

    def _send(self, row: dict[str, Any], sending: Sending, timeout: float) -> dict[str, Any]:
        name = (sending.key, sending.request_id)
        with self._lock:
            if self._failed is not None:
                raise self._failed
            reply = self._waiting.setdefault(name, {}).setdefault(sending.sent_at, Future())
        try:
            self._producer.send(row)
            self._producer.flush()
            return reply.result(timeout)
        except TimeoutError:
            raise self._behind(sending, timeout) from None
        finally:
            with self._lock:
                others = self._waiting.get(name, {})
                others.pop(sending.sent_at, None)
                if not others:
                    self._waiting.pop(name, None)

    def _behind(self, sending: Sending, timeout: float) -> Behind:
        return Behind(
            f'no reply to request "{sending.request_id}" of "{sending.key}" within {timeout:g} seconds',
            detail=f'it is in topic "{self._commands}", and is decided as soon as the handler gets there',
            hint="see that the pipeline runs; then send it again with the same request_id",
        )

    def _follow(self, batches: Any) -> None:
        try:
            for batch in batches:
                for row in batch.to_pylist(maps_as_pydicts="strict"):
                    self._hand_over(row)
        except HeadwaterError as error:
            with self._lock:
                self._failed = error
                waiting = [reply for each in self._waiting.values() for reply in each.values()]
            for each in waiting:
                with suppress(Exception):  # whoever waited may have gone
                    each.set_exception(error)

    def _hand_over(self, row: dict[str, Any]) -> None:
        with self._lock:
            waiting = self._waiting.get((row["key"], row["request_id"]), {})
            for sent_at, reply in waiting.items():
                if (row["events"] or row["sent_at"] == sent_at) and not reply.done():
                    reply.set_result(row)


def connected(decider: ConnectedDecider, pipeline: Pipeline) -> CommandClient:
    """Return a client of the handler that a pipeline has for a decider."""
    name = replies_name(decider.name)
    nodes = {node.name: node for node in pipeline.nodes}
    replies = nodes.get(name)
    if not isinstance(replies, StreamNode):
        raise UsageError(
            f'pipeline "{pipeline.name}" has no handler of "{decider.name}"',
            hint=f"declare it, as in {pipeline.name}.handler({decider.name})",
        )
    commands = pipeline[replies.upstreams[0]].readable_topic
    log = open_log(pipeline.log)
    try:
        return CommandClient(decider, log, str(commands), replies.topic)
    except BaseException:
        log.close()
        raise


def _sending(key: str, request_id: str | None) -> Sending:
    if not isinstance(key, str) or not key:
        raise UsageError(f"the key of an aggregate is a text, not {key!r:.80}")
    if request_id is not None and (not isinstance(request_id, str) or not request_id):
        raise UsageError(f"a request id is a text, not {request_id!r:.80}")
    id = uuid.uuid4().hex if request_id is None else request_id
    return Sending(key, id, durations.instant(durations.now()))
