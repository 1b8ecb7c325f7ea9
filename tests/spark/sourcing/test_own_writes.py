"""Views over what a handler has written, read after one's own command, by the position of its reply."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import DataFrame

import headwater
from account_kit import Deposit, Withdraw, account, handling_bank
from headwater import Pipeline, Position
from headwater.errors import Behind, UnknownTopic, UnknownView, UsageError
from headwater.sourcing.command_client import CommandClient
from headwater.views import View


def bank_with_views(log: str) -> Pipeline:
    bank = handling_bank(log)
    bank.source("prices", "item STRING, cents BIGINT")

    @bank.view(key=["key", "request_id"])
    def statements(account: DataFrame) -> DataFrame:
        return account.select("key", "request_id", "cents")

    @bank.view(key=["key", "request_id"])
    def answers(account_replies: DataFrame) -> DataFrame:
        return account_replies.select("key", "request_id", "accepted")

    @bank.view(key="item")
    def current(prices: DataFrame) -> DataFrame:
        return prices

    return bank


@pytest.mark.usefixtures("spark")
def test_a_view_of_events_or_replies_shows_what_a_command_did(tmp_path: Path) -> None:
    bank = bank_with_views(f"file:{tmp_path}/log")
    with headwater.run(bank), _connected(bank) as client, headwater.open_views(bank) as views:
        statements, answers = (_view(views, name) for name in ("statements", "answers"))
        for number in range(5):
            id = f"r{number}"
            reply = client.execute("ada", Deposit(10 + number), request_id=id)
            row = statements.get(("ada", id), wait_for=reply.position)
            assert row == {"key": "ada", "request_id": id, "cents": 10 + number}
            assert answers.get(("ada", id), wait_for=reply.position) is not None
        assert client.execute("ada", Withdraw(5), request_id="w").position.topic == "bank.account_replies"


@pytest.mark.usefixtures("spark")
def test_a_position_that_is_not_upstream_or_not_reached_is_told(tmp_path: Path) -> None:
    bank = bank_with_views(f"file:{tmp_path}/log")
    with headwater.run(bank) as running, _connected(bank) as client:
        reply = client.execute("ada", Deposit(1), request_id="r")
        with headwater.open(bank.log) as log, log.producer("prices") as producer:
            producer.send({"item": "tea", "cents": 3})
            sent = producer.flush()
        with headwater.open_views(bank) as views:
            statements = _view(views, "statements")
            statements.wait(reply.position)
            assert _view(views, "current").get("tea", wait_for=sent) is not None
            with pytest.raises(UsageError, match="does not read topic"):
                views["current"].wait(reply.position)
        running.stop()
    far = Position(reply.position.topic, {0: 1000}, reply.position.id)
    with headwater.open_views(bank.home) as views, pytest.raises(Behind, match="has not caught up") as told:
        views["statements"].wait(far, 0.2)
    assert 'has not got to "bank.account_replies:0=1000"' in str(told.value.detail)


def _view(views: headwater.views.Views, name: str) -> View:
    until = time.monotonic() + 60
    while True:
        try:
            return views[name]
        except UnknownView:  # the runner has not made it yet
            assert time.monotonic() < until
            time.sleep(0.1)


def _connected(bank: Pipeline) -> CommandClient:
    until = time.monotonic() + 60
    while True:
        try:
            return account().connect(bank)
        except UnknownTopic:  # the runner has not made its topics yet
            assert time.monotonic() < until
            time.sleep(0.1)
