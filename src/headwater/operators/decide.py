"""Commands decided one after the other, key by key, in the order of the log; each gets a reply.

What decides is the user's code, which is called for each command: Python row by row, for nothing else knows
what a command leads to. States are kept as bytes, and become objects once for each key and step.

Invariant: the replies to the commands of a key are what they give one after the other, in the order of their
offsets, whatever the split into steps. A command that was carried out before, under its request id, gets that
reply again and changes nothing. What was decided stays decided: a state that was folded by other code is
folded anew from the replies, which have all that has happened.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.operators.columns import check_columns
from headwater.operators.fold_failures import MOST
from headwater.operators.memory.key_hash import HashedGroups, hashed_groups
from headwater.operators.memory.operator_memory import OperatorMemory
from headwater.operators.memory.row_by_key import RowByKey
from headwater.operators.memory.slots import by_columns
from headwater.operators.operator import Operator, Step, rejected
from headwater.operators.values import dicts

KEY, REQUEST = "key", "request_id"
ORDER = ("partition", "offset")
"""The columns that tell where in the log a command is."""
REPEATED = "repeated"
STATE = "state"


class Decision(NamedTuple):
    """What a command leads to."""

    state: Any
    """Of its key, after it."""
    reply: dict[str, Any]
    """The columns of the reply, without the key and the request id."""
    carried_out: bool
    """Whether it has changed anything: then it is not carried out again under its request id."""


class CommandHandler(Protocol):
    """The user's code, and how its states become bytes."""

    @property
    def reply_schema(self) -> pa.Schema:
        """Of replies, without the key, the request id and whether it is repeated."""

    def load(self, stored: bytes) -> Any | None:
        """Return a state, or None if other code has made it."""

    def fold(self, replies: Iterable[dict[str, Any]]) -> Any:
        """Return the state of a key from the replies to all commands that were carried out, in no order."""

    def store(self, state: Any) -> bytes:
        """Return a state as bytes."""

    def decide(self, state: Any, command: dict[str, Any]) -> Decision:
        """Decide a command, a row of the input, and leave the state as it is."""


@dataclass(frozen=True)
class DecideMemory:
    """The state of each key, and the replies to commands that were carried out."""

    states: RowByKey
    replies: RowByKey


class _Decided(NamedTuple):
    """What came of the commands of a step."""

    replies: list[dict[str, Any]]
    states: dict[int, Any]
    """By the number of their key, those that have changed."""
    carried_out: list[int]
    """Places among the replies."""
    failed: dict[int, str]
    """Places of commands on which the code has failed, with what it said."""


@dataclass(frozen=True)
class Decide(Operator[DecideMemory]):
    """Decide the commands of each key in the order of their offsets, and emit a reply for each.

    Nothing is late. The state is that of each key and the reply to each request id under which something was
    carried out; both stay. What the code raises is passed on, and leaves the state as it was; a tolerant one
    sets the command aside instead, which then gets no reply.
    """

    handler: CommandHandler = field(compare=False)  # edited code goes on: it decides what comes from now on
    tolerant: bool = field(default=False, compare=False)
    key: tuple[str, ...] = field(init=False, default=(KEY,))

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the key, the request id, the columns of a reply, and whether it was given before."""
        check_columns("decide", (KEY, REQUEST, *ORDER), schema)
        lead = [schema.field(KEY), schema.field(REQUEST)]
        return pa.schema([*lead, *self.handler.reply_schema, pa.field(REPEATED, pa.bool_())])

    def initial_state(self, schema: pa.Schema) -> DecideMemory:
        """Return a state without keys."""
        states = pa.schema([pa.field(STATE, pa.binary())])
        return DecideMemory(RowByKey(states), RowByKey(self.output_schema(schema), by_columns((KEY,))))

    def memory(self, state: DecideMemory) -> OperatorMemory:
        """Return states and replies."""
        return OperatorMemory({"states": state.states.runs, "replies": state.replies.runs})

    def step(self, state: DecideMemory, rows: pa.Table, watermark: int) -> Step:
        """Decide new commands."""
        rows = rows.take(pc.sort_indices(rows, [(name, "ascending") for name in ORDER]))
        keys = hashed_groups(rows, (KEY,))
        decided = self._decided(rows, keys, state)
        schema = self.output_schema(rows.schema)
        out = pa.Table.from_pylist(decided.replies, schema)
        states = pa.table({STATE: pa.array(map(self.handler.store, decided.states.values()), pa.binary())})
        carried_out = out.take(pa.array(decided.carried_out, pa.int64()))
        # From here on nothing fails: a step that is tried again finds the state as it was.
        changed = np.fromiter(decided.states, np.int64, len(decided.states))
        state.states.put(keys.keys.take(changed), states)
        state.replies.put(hashed_groups(carried_out, (KEY, REQUEST)).keys, carried_out)
        return Step(out, dead=_dead(rows, decided.failed))

    def next_timer(self, state: DecideMemory) -> int | None:
        """Return None: time alone decides nothing."""
        return None

    def _decided(self, rows: pa.Table, keys: HashedGroups, memory: DecideMemory) -> _Decided:
        stored = memory.states.find(keys.keys).rows.column(STATE).to_pylist()
        requests = hashed_groups(rows, (KEY, REQUEST))
        answered = _replies(memory.replies, requests)
        made = _Decided([], {}, [], {})
        names = rows.column(KEY).take(pa.array(keys.first)).to_pylist()
        loaded = self._loaded(stored, names, memory, made.states)
        every = zip(dicts(rows), keys.of.tolist(), requests.of.tolist(), strict=True)
        for place, (command, key, request) in enumerate(every):
            if request in answered:
                made.replies.append({**answered[request], REPEATED: True})
                continue
            try:
                decision = self.handler.decide(loaded[key], command)
            except Exception as error:  # code of the user's may raise anything
                if not self.tolerant or len(made.failed) == MOST:
                    raise
                made.failed[place] = f"{type(error).__name__}: {error}"
                continue
            lead = {KEY: command[KEY], REQUEST: command[REQUEST]}
            made.replies.append({**lead, **decision.reply, REPEATED: False})
            if decision.carried_out:
                loaded[key] = made.states[key] = decision.state
                if command[REQUEST] is not None:
                    answered[request] = made.replies[-1]
                    made.carried_out.append(len(made.replies) - 1)
        return made

    def _loaded(
        self, stored: list[bytes | None], names: list[Any], memory: DecideMemory, changed: dict[int, Any]
    ) -> dict[int, Any]:
        """Return the states of keys by their numbers; those that had to be folded anew are changed ones."""
        loaded = {
            number: None if each is None else self.handler.load(each) for number, each in enumerate(stored)
        }
        missing = {names[number]: number for number, state in loaded.items() if state is None}
        if not missing:
            return loaded
        replies: dict[int, list[dict[str, Any]]] = {number: [] for number in missing.values()}
        if any(stored[number] is not None for number in missing.values()):
            for reply in dicts(memory.replies.rows()):  # once, after an edit of the code
                if reply[KEY] in missing:
                    replies[missing[reply[KEY]]].append(reply)
        for number, every in replies.items():
            loaded[number] = self.handler.fold(every)
            if stored[number] is not None:
                changed[number] = loaded[number]
        return loaded


def _replies(memory: RowByKey, requests: HashedGroups) -> dict[int, dict[str, Any]]:
    """Return the replies that were given before, by the number of their request."""
    found = memory.find(requests.keys)
    known = np.flatnonzero(found.known)
    return dict(zip(known.tolist(), dicts(found.rows.take(pa.array(known))), strict=True))


def _dead(rows: pa.Table, failed: dict[int, str]) -> pa.Table | None:
    if not failed:
        return None
    return rejected(rows.take(pa.array(list(failed), pa.int64())), list(failed.values()))
