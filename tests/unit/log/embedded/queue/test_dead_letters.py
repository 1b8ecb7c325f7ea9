"""Dead letters: there is one of each, whatever happens between its steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headwater.errors import RecordTooLarge, TopicError
from headwater.log.dead_letter_topic import ORIGIN, REASON
from headwater.log.embedded import EmbeddedLog
from headwater.log.embedded.queue.dead_letters import DeadLettering
from headwater.log.queue import MAX_REASON
from headwater.record import MAX_BYTES

Open = Callable[..., Any]


class Killed(BaseException):
    """The process is gone."""


def test_a_letter_that_was_written_before_a_crash_is_not_written_again(
    log: EmbeddedLog, open_queue: Open, send: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    send({"n": 1}, {"n": 2})
    queue = open_queue()
    one, two = queue.receive(2, timeout=0)
    append = DeadLettering._append

    def killed(dead_letters: DeadLettering, dying: Any) -> None:
        append(dead_letters, dying)
        raise Killed

    monkeypatch.setattr(DeadLettering, "_append", killed)
    with pytest.raises(Killed):
        one.reject("first")
    monkeypatch.setattr(DeadLettering, "_append", append)
    other = open_queue()
    assert other.status().dead == 1  # it is there, and still in the queue
    two.reject("second")
    assert [(dead.value["n"], dead.reason) for dead in other.dead()] == [(1, "first"), (2, "second")]
    assert other.status().depth == 0


def test_the_largest_record_becomes_a_dead_letter_and_a_message_again(log: EmbeddedLog) -> None:
    log.create_topic("large", "b BINARY")
    with log.producer("large") as producer, pytest.raises(RecordTooLarge):
        producer.send({"b": bytes(MAX_BYTES + 1)})
        producer.flush()
    largest = bytes(MAX_BYTES - 4)  # and the offset in a column of such values
    with log.producer("large") as producer:
        producer.send({"b": largest})
    with log.queue("large", "g") as queue:
        for _ in range(2):
            [message] = queue.receive(timeout=0)
            message.reject("é" * 5000)
            [dead] = queue.dead()
            assert (dead.value["b"], dead.reason) == (largest, "é" * MAX_REASON)
            assert queue.redrive() == 1


def test_dead_letters_that_cannot_be_written_keep_nobody_from_other_messages(
    log: EmbeddedLog, open_queue: Open, send: Any, caplog: pytest.LogCaptureFixture
) -> None:
    send({"n": 1}, {"n": 2}, {"n": 3})
    queue = open_queue()
    [message] = queue.receive(timeout=0)
    log.create_topic("t.g.dead", "x STRING NOT NULL")  # by somebody else
    with pytest.raises(TopicError, match="cannot have topic"):
        message.reject("no")
    assert [each.value["n"] for each in queue.receive(timeout=0)] == [2]
    assert [each.value["n"] for each in queue.receive(timeout=0)] == [3]
    assert len(caplog.records) == 1
    log.delete_topic("t.g.dead")
    assert queue.receive(timeout=0) == []
    assert [dead.value["n"] for dead in queue.dead()] == [1]


def test_what_was_dying_when_its_consumer_was_killed_is_set_aside_by_another(
    open_queue: Open, send: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    send({"n": 1})
    [message] = open_queue().receive(timeout=0)

    def killed(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(DeadLettering, "_append", killed)
        message.reject("no")
    other = open_queue()
    assert other.receive(timeout=0) == []
    assert [dead.reason for dead in other.dead()] == ["no"]


def test_several_consumers_set_dead_letters_aside_in_turn(open_queue: Open, send: Any) -> None:
    send(*({"n": n} for n in range(6)))
    queues = [open_queue(), open_queue()]
    for n in range(6):
        [message] = queues[n % 2].receive(timeout=0)
        message.reject(f"no {n}")
    assert [dead.reason for dead in queues[0].dead()] == [f"no {n}" for n in range(6)]


def test_what_was_redriven_before_a_crash_is_not_redriven_again(
    open_queue: Open, send: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    send({"n": 1})
    queue = open_queue()
    queue.receive(timeout=0)[0].reject("no")
    append = DeadLettering._append_retries

    def killed(dead_letters: DeadLettering, *places: Any) -> None:
        append(dead_letters, *places)
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(DeadLettering, "_append_retries", killed)
        queue.redrive()
    assert queue.redrive() == 1
    assert len(queue.receive(10, timeout=0)) == 1


def test_a_new_queue_of_the_name_writes_its_own_letters(
    log: EmbeddedLog, open_queue: Open, send: Any
) -> None:
    send({"n": 1})
    for reason in ("first", "second"):
        queue = open_queue()
        queue.receive(timeout=0)[0].reject(reason)
        queue.close()
        log.delete_queue("t", "g")
    assert [dead.reason for dead in open_queue().dead()] == ["first"]  # both are of one record
    assert log.describe("t.g.dead").records == 2


def test_a_message_of_a_topic_of_dead_letters_keeps_the_headers_of_its_first_death(
    log: EmbeddedLog, open_queue: Any, send: Any
) -> None:
    send({"n": 1}, headers={"trace": "x"})
    open_queue().receive(timeout=0)[0].reject("first")
    with log.queue("t.g.dead", group="look") as queue:
        [message] = queue.receive(timeout=0)
        before = message.headers
        assert (before["trace"], before[REASON], before[ORIGIN]) == (b"x", b"first", b"t:0:0")
        for _ in range(2):
            message.reject("second")
            [dead] = queue.dead()
            assert (dead.headers, dead.reason, dead.origin) == (before, "second", "t.g.dead:0:0")
            assert queue.redrive() == 1
            [message] = queue.receive(timeout=0)
            assert message.headers == before
