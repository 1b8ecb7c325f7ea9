"""Commands are decided in the order of the log, once for each request, whatever the steps and restarts."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.decide import Decide, Decision
from headwater.operators.event_time import NEVER
from headwater.operators.operator import ERROR, Step
from headwater.schema import parse
from unit.operators.stepping import LOGGED, SPILLED, TablesInMemory, reopened

SCHEMA = parse("key STRING, request_id STRING, amount BIGINT, partition INT, offset BIGINT")
Row = dict[str, Any]


@dataclass(frozen=True)
class Account:
    """A balance that is never negative; the sum of all amounts, times a factor, is its state."""

    factor: int = 1
    reply_schema = parse("accepted BOOLEAN, balance BIGINT, amount BIGINT")

    def load(self, stored: bytes) -> int | None:
        factor, state = pickle.loads(stored)
        return state if factor == self.factor else None

    def store(self, state: int) -> bytes:
        return pickle.dumps((self.factor, state))

    def fold(self, replies: Iterable[Row]) -> int:
        return self.factor * sum(reply["amount"] for reply in replies)

    def decide(self, state: int, command: Row) -> Decision:
        amount = command["amount"]
        if amount == 13:
            raise ValueError("thirteen")
        if state + amount * self.factor < 0 or not amount:
            return Decision(state, {"accepted": False, "balance": state, "amount": amount}, False)
        after = state + amount * self.factor
        return Decision(after, {"accepted": True, "balance": after, "amount": amount}, True)


def table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, SCHEMA)


def expected(rows: list[Row]) -> list[Row]:
    """The meaning, as plainly as it can be said."""
    balances: dict[str, int] = {}
    first: dict[tuple[str, str], Row] = {}
    replies = []
    for row in rows:
        name = (row["key"], row["request_id"])
        if row["request_id"] is not None and name in first:
            replies.append({**first[name], "repeated": True})
            continue
        balance = balances.get(row["key"], 0)
        accepted = row["amount"] != 0 and balance + row["amount"] >= 0
        balances[row["key"]] = balance = balance + row["amount"] if accepted else balance
        reply = {"key": row["key"], "request_id": row["request_id"], "accepted": accepted}
        replies.append({**reply, "balance": balance, "amount": row["amount"], "repeated": False})
        if accepted and row["request_id"] is not None:
            first[name] = replies[-1]
    return replies


COMMANDS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["1", "2", "3", "4", None]), st.integers(-9, 9)),
    max_size=25,
).map(
    lambda drawn: [
        {"key": key, "request_id": id, "amount": amount, "partition": "abc".index(key) % 2, "offset": offset}
        for offset, (key, id, amount) in enumerate(drawn)
    ]
)


@given(COMMANDS, st.data())
def test_any_split_order_within_a_step_and_restart_gives_what_the_oracle_gives(
    rows: list[Row], data: st.DataObject
) -> None:
    operator = Decide(Account())
    state, files, out = operator.initial_state(SCHEMA), TablesInMemory(), list[Row]()
    left = list(rows)
    while left:
        count = data.draw(st.integers(1, len(left)))
        part, left = left[:count], left[count:]
        step = operator.step(state, table(data.draw(st.permutations(part))), NEVER)
        out += step.out.to_pylist()
        if (limits := data.draw(st.sampled_from([None, LOGGED, SPILLED]))) is not None:
            state = reopened(operator, SCHEMA, operator.memory(state).save(files, limits), files)
    wanted = expected(rows)
    for key in "abc":  # between keys of several partitions there is no order
        assert [row for row in out if row["key"] == key] == [row for row in wanted if row["key"] == key]


def run(operator: Decide, state: Any, *amounts: int, first: int = 0) -> Step:
    rows = [
        {"key": "a", "request_id": str(first + n), "amount": amount, "partition": 0, "offset": first + n}
        for n, amount in enumerate(amounts)
    ]
    return operator.step(state, table(rows), NEVER)


def test_a_command_that_fails_leaves_the_state_as_it_was() -> None:
    operator = Decide(Account())
    state = operator.initial_state(SCHEMA)
    run(operator, state, 5)
    with pytest.raises(ValueError, match="thirteen"):
        run(operator, state, 7, 13, first=1)
    assert run(operator, state, -5, first=1).out["balance"].to_pylist() == [0]


def test_a_tolerant_one_sets_a_command_that_fails_aside_without_a_reply() -> None:
    operator = Decide(Account(), tolerant=True)
    step = run(operator, operator.initial_state(SCHEMA), 5, 13, 2)
    assert step.out["balance"].to_pylist() == [5, 7]
    assert step.dead is not None
    assert (step.dead["offset"].to_pylist(), step.dead[ERROR].to_pylist()) == ([1], ["ValueError: thirteen"])


def test_what_other_code_has_folded_is_folded_anew_from_the_replies() -> None:
    before, after = Decide(Account()), Decide(Account(factor=10))
    state = before.initial_state(SCHEMA)
    run(before, state, 5, -9, 2)
    step = run(after, state, 1, first=3)
    assert step.out["balance"].to_pylist() == [80]


def test_nothing_is_learnt_from_what_is_refused() -> None:
    operator = Decide(Account())
    state = operator.initial_state(SCHEMA)
    run(operator, state, -1, 0)
    assert not operator.memory(state).save(TablesInMemory()).stretches
