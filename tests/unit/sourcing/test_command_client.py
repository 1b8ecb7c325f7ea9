"""Which reply a client takes for its own, where a command was sent more than once; no pipeline runs."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pytest

import headwater
from account_kit import Withdraw, account
from headwater import Log
from headwater.errors import Rejected
from headwater.sourcing.command_client import CommandClient
from headwater.sourcing.reply import Reply

REPLIES = (
    "key STRING NOT NULL, request_id STRING, command STRING, sent_at TIMESTAMP, accepted BOOLEAN, "
    "reason STRING, event_count BIGINT, events ARRAY<STRUCT<event: STRING, revision: INT, "
    "recorded_at: TIMESTAMP, command: STRING, request_id: STRING, rejection: STRING, cents: BIGINT>>, "
    "answer STRING, repeated BOOLEAN"
)
EVENT = {"event": "Withdrawn", "revision": 1, "command": "Withdraw", "request_id": "r1", "cents": 5}


@pytest.fixture
def log() -> Iterator[Log]:
    with headwater.open("memory:") as log:
        log.create_topic("commands", account().command_schema.ddl, key="key", event_time="sent_at")
        log.create_topic("replies", REPLIES, key="key")
        yield log


@pytest.fixture
def client(log: Log) -> Iterator[CommandClient]:
    with CommandClient(account(), log, "commands", "replies") as connected:
        yield connected


def sent_at(log: Log) -> datetime:
    """Wait until a command was sent, and return when that was."""
    for batch in log.read("commands", follow=True):
        told: datetime = batch.column("sent_at")[0].as_py()
        return told
    raise AssertionError


def reply(log: Log, at: datetime, **told: Any) -> None:
    row = {"key": "ada", "request_id": "r1", "command": "Withdraw", "sent_at": at, "repeated": False, **told}
    with log.producer("replies") as producer:
        producer.send(row)


def withdrawing(pool: ThreadPoolExecutor, client: CommandClient) -> Future[Reply]:
    return pool.submit(client.execute, "ada", Withdraw(5), request_id="r1", timeout=20)


def test_a_rejection_of_an_earlier_sending_is_not_that_of_this_one(log: Log, client: CommandClient) -> None:
    with ThreadPoolExecutor() as pool:
        told = withdrawing(pool, client)
        at = sent_at(log)
        reply(log, at - timedelta(seconds=2), accepted=False, reason="overdrawn", event_count=0)
        events = [{**EVENT, "recorded_at": at}]  # something was deposited in between
        reply(log, at, accepted=True, event_count=2, events=events)
        assert (told.result().event_count, len(told.result().events)) == (2, 1)


def test_what_an_earlier_sending_has_carried_out_is_the_reply(log: Log, client: CommandClient) -> None:
    with ThreadPoolExecutor() as pool:
        told = withdrawing(pool, client)
        earlier = sent_at(log) - timedelta(seconds=2)
        reply(log, earlier, accepted=True, event_count=1, events=[{**EVENT, "recorded_at": earlier}])
        assert told.result().event_count == 1


def test_the_rejection_of_this_sending_is_told(log: Log, client: CommandClient) -> None:
    with ThreadPoolExecutor() as pool:
        told = withdrawing(pool, client)
        reply(log, sent_at(log), accepted=False, reason="overdrawn", event_count=0)
        with pytest.raises(Rejected, match="overdrawn"):
            told.result()
