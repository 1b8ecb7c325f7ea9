"""A decider becomes a source, a stream of replies and one of events; what cannot be is refused."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from account_kit import Deposited, account, handling_bank
from headwater import Pipeline
from headwater.errors import PipelineError
from headwater.pipeline.handling import replies_name
from headwater.sourcing import DurableTimer


def test_a_handler_is_a_source_of_commands_and_streams_of_replies_and_events() -> None:
    bank = handling_bank()
    assert [source.name for source in bank.sources] == ["commands"]
    assert bank["commands"].key == ("key",)
    assert {node.name: node.upstreams for node in bank.nodes} == {
        "account_replies": ("commands",),
        "account": ("account_replies",),
    }
    assert {node.name: node.code.fixed_partitions for node in bank.nodes} == {
        "account_replies": True,
        "account": False,
    }
    assert replies_name("account") == "account_replies"
    assert not bank.problems()
    assert all(node.location.startswith("tests") for node in bank.nodes)


def test_two_handlers_have_their_own_commands() -> None:
    bank = handling_bank()
    with pytest.raises(PipelineError, match="commands"):
        bank.handler(account("savings"))
    bank.handler(account("loans"), commands="loan_commands")
    assert len(bank.nodes) == 4


def test_timers_need_an_opened_decider() -> None:
    timed = account(timers=[DurableTimer(Deposited, after="1 minute", command=lambda event: event)])
    with pytest.raises(PipelineError, match="timers, and cannot be a handler") as refused:
        Pipeline("bank").handler(timed)
    assert "test_handling.py" in str(refused.value)


def test_a_query_needs_the_handler_that_answers_it() -> None:
    with pytest.raises(PipelineError, match='no handler of "account"'):
        Pipeline("bank").query("balance", account(), lambda state, arguments: state)


def test_a_field_that_is_named_as_what_every_command_has_is_refused() -> None:
    @dataclass(frozen=True)
    class Send:
        sent_at: int

    with pytest.raises(Exception, match="named as a column that every record has"):
        account(commands=[Send])
