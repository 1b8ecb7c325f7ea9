"""A client whose commands go by the log to a pipeline that runs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import headwater
from account_kit import Deposit, Withdraw, account, handling_bank
from headwater import Pipeline
from headwater.errors import Behind, Rejected, UnknownTopic, UsageError
from headwater.sourcing.command_client import CommandClient


@pytest.mark.usefixtures("spark")
def test_a_client_sends_by_the_log_and_hears_the_reply(tmp_path: Path) -> None:
    bank = handling_bank(f"file:{tmp_path}/log")
    with headwater.run(bank), _connected(bank) as client:
        reply = client.execute("ada", Deposit(50), request_id="d1")
        assert (reply.event_count, len(reply.events), reply.repeated) == (1, 1, False)
        again = client.execute("ada", Deposit(50), request_id="d1")
        assert (again.events, again.repeated) == (reply.events, True)
        with pytest.raises(Rejected):
            client.execute("ada", Withdraw(51))
        assert client.ask("balance", "ada", why="audit") == {"cents": 50, "why": "audit"}
        with pytest.raises(UsageError, match='answers no query "blance"; its queries: balance'):
            client.ask("blance", "ada")
        assert client.execute("ada", Deposit(1)).event_count == 2, "and it goes on"
        with pytest.raises(Behind, match="no reply"):
            client.execute("ada", Deposit(1), timeout=0.0)


def test_a_pipeline_without_such_a_handler_is_refused() -> None:
    with pytest.raises(UsageError, match='has no handler of "account"'):
        account().connect(Pipeline("bank"))


def _connected(bank: Pipeline) -> CommandClient:
    until = time.monotonic() + 120
    while True:
        try:
            return account().connect(bank)
        except UnknownTopic:  # the runner has not made its topics yet
            assert time.monotonic() < until
            time.sleep(0.1)
