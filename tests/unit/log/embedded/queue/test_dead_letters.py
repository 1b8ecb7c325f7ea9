"""Dead letters: there is one of each, whatever happens between its steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headwater.log.embedded import EmbeddedLog
from headwater.log.embedded.queue.dead_letters import DeadLettering

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
