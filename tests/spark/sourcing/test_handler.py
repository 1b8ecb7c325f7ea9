"""A decider by the log: a node decides commands in order, and gives what the opened decider gives."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from pyspark.sql import SparkSession

import headwater
from account_kit import Deposit, Withdraw, account, decide, handling_bank
from headwater import Pipeline
from headwater.errors import Rejected, SchemaError
from headwater.sourcing.command_schema import Sending
from headwater.testing.harness import Harness

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
META = ("key", "event", "revision", "command", "request_id")


@pytest.fixture
def running(spark: SparkSession) -> Iterator[Harness]:
    with Harness(handling_bank(), spark=spark, limit=7) as harness:
        yield harness


def rows(commands: list[tuple[str, Any, str]]) -> list[dict[str, Any]]:
    schema = account().command_schema
    return [schema.row(command, Sending(key, id, NOON)) for key, command, id in commands]


def test_its_events_are_those_of_the_decider_that_is_opened(running: Harness, tmp_path: Path) -> None:
    chance = random.Random(7)
    kinds = (Deposit, Withdraw)
    commands = [
        (chance.choice("abc"), chance.choice(kinds)(chance.randint(1, 50)), f"r{chance.randrange(40)}")
        for _ in range(60)
    ]
    commands = list({(key, id): (key, command, id) for key, command, id in commands}.values()) + commands[:9]
    wanted = {(key, id): command for key, command, id in reversed(commands)}
    commands = [(key, wanted[key, id], id) for key, _, id in commands]  # sent again is the same command
    replies: list[tuple[Any, ...]] = []
    with account().open(f"file:{tmp_path}/direct") as direct:
        for key, command, id in commands:
            try:
                replies.append((key, True, len(direct.execute(key, command, request_id=id).events)))
            except Rejected as error:
                replies.append((key, False, error.message))
        topic = direct.log.read("account")
        opened = [row for batch in topic for row in batch.to_pylist()]

    running.send("commands", rows(commands[:30]))
    running.step()
    running.restart()
    running.send("commands", rows(commands[30:]))
    running.step()
    handled = running.stream("account")
    told = [
        (row["key"], row["accepted"], len(row["events"]) if row["accepted"] else row["reason"])
        for row in running.stream("account_replies")
    ]
    fields = [name for name in opened[0] if name != "recorded_at"]
    for key in "abc":
        mine = [{name: row[name] for name in fields} for row in handled if row["key"] == key]
        assert mine == [{name: row[name] for name in fields} for row in opened if row["key"] == key]
        assert [row for row in told if row[0] == key] == [row for row in replies if row[0] == key]
    assert any(row["repeated"] for row in running.stream("account_replies"))
    running.verify()


def test_a_question_is_answered_by_the_state_at_its_place(running: Harness) -> None:
    schema = account().command_schema

    def question(id: str) -> dict[str, Any]:
        return schema.question("balance", {"asked": id}, Sending("a", id, NOON))

    deposits = rows([("a", Deposit(5), "1"), ("a", Deposit(7), "2")])
    running.send("commands", [question("q0"), deposits[0], question("q1"), deposits[1], question("q2")])
    running.step()
    answers = [row["answer"] for row in running.stream("account_replies") if row["answer"]]
    assert answers == [f'{{"cents":{cents},"asked":"q{n}"}}' for n, cents in enumerate((0, 5, 12))]
    assert [row["event"] for row in running.stream("account")] == ["Deposited", "Deposited"]


def test_an_unknown_command_or_question_stops_the_node_and_names_it(running: Harness) -> None:
    running.send("commands", [{**rows([("a", Deposit(5), "1")])[0], "command": "Steal"}])
    with pytest.raises(SchemaError, match='no command "Steal"'):
        running.step()


BROKEN = {13}


def decide_or_break(balance: int, command: Any) -> Any:
    if command.cents in BROKEN:
        raise ArithmeticError(f"{command.cents} is broken")
    return decide(balance, command)


def test_a_command_that_was_set_aside_is_decided_when_it_is_redriven(spark: SparkSession) -> None:
    decider = account(decide=decide_or_break)
    pipeline = Pipeline("bank")
    pipeline.handler(decider, on_error="dead_letter")
    with Harness(pipeline, spark=spark) as harness, mock.patch.object(sys.modules[__name__], "BROKEN", {13}):
        sent = [("a", Deposit(cents), f"r{cents}") for cents in (5, 13, 7)]
        harness.send("commands", rows(sent))
        harness.step()
        [letter] = harness.dead("account_replies")
        assert (letter["topic"], letter["partition"], letter["offset"]) == ("commands", 0, 1)
        assert letter["error"] == "ArithmeticError: 13 is broken"
        assert [row["cents"] for row in harness.stream("account")] == [5, 7]
        BROKEN.clear()
        assert headwater.redrive(harness.pipeline, "account_replies") == 1
        assert headwater.redrive(harness.pipeline, "account_replies") == 0, "it is appended once"
        harness.step()
        assert [row["cents"] for row in harness.stream("account")] == [5, 7, 13]
        harness.send("commands", rows(sent))
        harness.step()
        assert len(harness.stream("account")) == 3, "each is carried out once, under its request id"
        harness.verify()
