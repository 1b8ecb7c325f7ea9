"""A decider that runs by the log: commands are a topic, a node decides them in order, and replies to each.

No lock is taken anywhere: the commands of a key are in one partition, and one node decides them one after the
other. Invariant: the events are those that the decider gives when it is opened and called for the same
commands in the same order.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Protocol

import orjson
import pyarrow as pa

from headwater import schema as schemas
from headwater.durations import micros
from headwater.errors import Rejected, UsageError
from headwater.operators.decide import Decide, Decision
from headwater.operators.spec import Side, setting_aside
from headwater.pipeline.handling import Answer
from headwater.sourcing.command_schema import CommandSchema
from headwater.sourcing.event_schema import META, EventSchema, Recording
from headwater.sourcing.fold import Fold
from headwater.sourcing.settings import DeciderSettings
from headwater.sourcing.snapshots import FoldedState
from headwater.transforms.transform import Transform

_EVENT_META = {name: kind.removesuffix(" NOT NULL") for name, kind in META.items() if name != "key"}


class HandledDecider(Protocol):
    """What of a decider a handler needs."""

    name: str
    decide: Callable[[Any, Any], Any]
    evolve: Callable[[Any, Any], Any]
    settings: DeciderSettings
    schema: EventSchema
    command_schema: CommandSchema
    fold: Fold

    @property
    def fingerprint(self) -> str:
        """What its fold does."""


@dataclass(frozen=True)
class DeciderHandler:
    """Decides the commands of a decider, and answers questions about the states of its aggregates."""

    decider: HandledDecider
    fingerprint: str
    """Of the decider's fold, taken where its source can be read."""
    answers: Mapping[str, Answer] = field(default_factory=dict)

    @property
    def reply_schema(self) -> pa.Schema:
        """Whether a command was accepted, or why not; its events; what a question was answered."""
        columns = ", ".join(
            f"{name}: {kind}" for name, kind in (_EVENT_META | self.decider.schema.columns).items()
        )
        return schemas.parse(
            "command STRING, sent_at TIMESTAMP, accepted BOOLEAN, reason STRING, event_count BIGINT, "
            f"events ARRAY<STRUCT<{columns}>>, answer STRING"
        )

    def load(self, stored: bytes) -> FoldedState | None:
        """Return a state that this node itself has stored, in the home of its pipeline."""
        fingerprint, _, content = stored.partition(b" ")
        if fingerprint != self.fingerprint.encode():
            return None
        state: FoldedState = pickle.loads(content)
        return state

    def store(self, state: FoldedState) -> bytes:
        """Return a state as bytes, with which fold has made it."""
        return self.fingerprint.encode() + b" " + pickle.dumps(state, protocol=5)

    def fold(self, replies: Iterable[dict[str, Any]]) -> FoldedState:
        """Return the state that the events of replies lead to."""
        state = self.decider.fold.beginning
        for reply in sorted(replies, key=itemgetter("event_count")):
            for row in reply["events"]:
                events = self.decider.schema.events({**row, "key": reply["key"]})
                state = self.decider.fold.events(state, events, micros(row["recorded_at"]), state.count)
        return state

    def decide(self, state: FoldedState, command: dict[str, Any]) -> Decision:
        """Decide a command, or answer a question, in the state of its key."""
        name, at = command["command"], command["sent_at"]
        reply: dict[str, Any] = {"command": name, "sent_at": at, "accepted": True, "event_count": state.count}
        if command["question"] is not None:
            return Decision(state, {**reply, **self._answer(name, state, command["question"])}, False)
        asked = self.decider.command_schema.command(command)
        try:
            events = tuple(self.decider.decide(state.state, asked) or ())
        except Rejected as error:
            return Decision(state, {**reply, "accepted": False, "reason": error.message}, False)
        recording = Recording(command["key"], at, name, command["request_id"])
        rows = [self.decider.schema.row(each, recording) for each in events]
        after = self.decider.fold.events(state, events, micros(at), state.count) if events else state
        return Decision(after, {**reply, "event_count": after.count, "events": rows}, bool(events))

    def _answer(self, name: str, state: FoldedState, question: str) -> dict[str, Any]:
        """Return what a reply says of a question; one that nobody declared must not stop the commands."""
        answer = self.answers.get(name)
        if answer is None:
            known = ", ".join(self.answers) or "it has none"
            reason = f'decider "{self.decider.name}" answers no query "{name}"; its queries: {known}'
            return {"accepted": False, "reason": reason}
        return {"answer": orjson.dumps(answer(state.state, orjson.loads(question))).decode()}


@dataclass(frozen=True)
class DeciderHandling:
    """A decider as ``Pipeline.handler`` takes it."""

    decider: HandledDecider

    @property
    def command_ddl(self) -> str:
        """The columns of its commands."""
        return self.decider.command_schema.ddl

    @property
    def user_functions(self) -> tuple[Callable[..., Any], ...]:
        """What it calls of the user's."""
        return (self.decider.decide, self.decider.evolve)

    def check(self) -> None:
        """Refuse settings that a node of a pipeline cannot carry out."""
        settings = self.decider.settings
        if settings.timers or settings.boundary:
            what = "timers" if settings.timers else "a boundary"
            raise UsageError(
                f'decider "{self.decider.name}" has {what}, and cannot be a handler of a pipeline',
                detail="a node decides by the state of one key, when a command comes",
                hint="open it, and call execute",
            )

    def replies(self, commands: Any, answers: Mapping[str, Answer]) -> Any:
        """Return the replies to a DataFrame of commands."""

        def build(rows: Side) -> Decide:
            fingerprint = self.decider.fingerprint
            return Decide(DeciderHandler(self.decider, fingerprint, dict(answers)), setting_aside.get())

        return commands.transform(Transform("decide", build))

    def events_query(self, replies: str) -> str:
        """Return the query by which the events of replies become rows of the topic of events."""
        columns = ", ".join(f"one.{name}" for name in (_EVENT_META | self.decider.schema.columns))
        return (
            f"SELECT key, {columns} FROM (SELECT key, explode(events) AS one FROM {replies}"  # noqa: S608
            " WHERE accepted AND NOT repeated)"
        )
