"""The embedded queue: time, order, priorities, deaths of consumers, lost records."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from headwater import durations
from headwater.errors import Fenced, OffsetLost, TopicReplaced, UsageError
from headwater.log.embedded import EmbeddedLog
from headwater.log.queue import Message
from headwater.log.queue_settings import QueueSettings

Send = Callable[..., None]
Open = Callable[..., Any]


def numbers(messages: list[Message]) -> list[int]:
    return [message.value["n"] for message in messages]


def test_what_is_not_acknowledged_in_time_is_another_s_and_the_late_answer_is_fenced(
    open_queue: Open, send: Send, clock: Any
) -> None:
    send({"n": 1})
    one, two = open_queue(), open_queue()
    [slow] = one.receive(visible_after="30 seconds", timeout=0)
    assert two.receive(timeout=0) == []
    clock.wait(31)
    [again] = two.receive(timeout=0)
    assert (again.value, again.deliveries) == (slow.value, 2)
    for late in (slow.ack, slow.extend, slow.nack):
        with pytest.raises(Fenced):
            late()
    again.ack()


def test_deliveries_are_told_apart_though_programs_seed_their_random_numbers(
    open_queue: Open, send: Send, clock: Any
) -> None:
    send({"n": 1})
    one, two = open_queue(), open_queue()
    random.seed(0)
    [slow] = one.receive(visible_after="30 seconds", timeout=0)
    clock.wait(31)
    random.seed(0)
    [again] = two.receive(timeout=0)
    with pytest.raises(Fenced):
        slow.ack()
    again.ack()


def test_a_topic_that_became_compacted_meanwhile_is_refused_and_what_was_received_is_answered(
    log: EmbeddedLog, open_queue: Open, send: Send
) -> None:
    send({"n": 1}, {"n": 2})
    queue = open_queue()
    [message] = queue.receive(timeout=0)
    log._storage.alter("t", {"cleanup": "compact"})  # as one who had not yet seen the queue
    with pytest.raises(UsageError, match="compacted"):
        queue.receive(timeout=0)
    message.ack()


def test_a_message_can_be_kept_for_longer(open_queue: Open, send: Send, clock: Any) -> None:
    send({"n": 1})
    one, two = open_queue(), open_queue()
    [message] = one.receive(visible_after="10 seconds", timeout=0)
    for _ in range(3):
        clock.wait(8)
        message.extend("10 seconds")
    assert two.receive(timeout=0) == []
    message.ack()


def test_a_key_s_next_message_waits_for_the_one_before(open_queue: Open, send: Send) -> None:
    send({"k": "a", "n": 1}, {"k": "a", "n": 2}, {"k": "b", "n": 3}, {"k": "a", "n": 4})
    queue = open_queue(QueueSettings(ordered=True))
    first = queue.receive(10, timeout=0)
    assert numbers(first) == [1, 3]
    assert queue.status().blocked == 2
    first[0].nack()
    [again] = queue.receive(10, timeout=0)
    assert numbers([again]) == [1]
    again.reject("no")
    [second] = queue.receive(10, timeout=0)
    second.ack()
    assert numbers(queue.receive(10, timeout=0)) == [4]


def test_a_redriven_message_is_the_next_of_its_key(open_queue: Open, send: Send) -> None:
    send(*({"k": "a", "n": n} for n in range(5)), {"k": "b", "n": 5})
    queue = open_queue(QueueSettings(ordered=True))
    for _ in range(2):
        queue.receive(1, timeout=0)[0].reject("no")
    [second] = queue.receive(1, timeout=0)
    assert numbers([second]) == [2]
    assert queue.redrive() == 2
    assert numbers(queue.receive(10, timeout=0)) == [5], "none of the key in flight comes, though redriven"
    second.ack()
    order = []
    while messages := queue.receive(10, timeout=0):
        order += numbers(messages)
        assert len(messages) == 1
        queue.ack(messages)
    assert order == [0, 1, 3, 4]


def test_a_priority_counts_though_its_message_waited_behind_one_that_expired(
    open_queue: Open, send: Send, clock: Any
) -> None:
    send({"k": "a", "n": 1, "at": durations.instant(clock.now - 1)})
    send({"k": "a", "n": 2, "p": 2}, {"k": "b", "n": 3, "p": 1})
    queue = open_queue(QueueSettings(ordered=True, priority="p", time_to_live="at"))
    assert numbers(queue.receive(1, timeout=0)) == [2]


def test_higher_priorities_come_first(open_queue: Open, send: Send) -> None:
    send(*({"n": n, "p": n % 3} for n in range(9)))
    queue = open_queue(QueueSettings(priority="p"))
    assert numbers(queue.receive(4, timeout=0)) == [2, 5, 8, 1]
    send({"n": 9, "p": 5})
    assert numbers(queue.receive(2, timeout=0)) == [9, 4]


def test_a_message_is_delivered_when_it_is_due(open_queue: Open, send: Send, clock: Any) -> None:
    send({"n": 1, "at": durations.instant(clock.now + 60_000_000)}, {"n": 2})
    queue = open_queue(QueueSettings(delay="at"))
    [message] = queue.receive(10, timeout=0)
    assert message.value["n"] == 2
    message.ack()
    assert queue.status().delayed == 1
    clock.wait(61)
    assert numbers(queue.receive(10, timeout=0)) == [1]


def test_a_message_that_has_expired_is_dead(open_queue: Open, send: Send, clock: Any) -> None:
    send({"n": 1})
    queue = open_queue(QueueSettings(time_to_live="1 hour"))
    clock.wait(3601)
    assert queue.receive(10, timeout=0) == []
    [dead] = queue.dead()
    assert (dead.reason, dead.deliveries) == ("expired", 0)


def test_a_header_that_cannot_be_read_makes_a_dead_letter(open_queue: Open, send: Send) -> None:
    send({"n": 1}, headers={"after": "soon"})
    queue = open_queue(QueueSettings(delay="header:after"))
    assert queue.receive(10, timeout=0) == []
    [dead] = queue.dead()
    assert "neither a time nor an interval" in dead.reason


CONSUMER = """
import sys, time
import headwater
queue = headwater.open(sys.argv[1]).queue("t", "g")
print(len(queue.receive(2, visible_after="1 hour", timeout=5)), flush=True)
time.sleep(600)
"""


def test_a_consumer_that_is_killed_gives_its_messages_back_at_once(
    log: EmbeddedLog, open_queue: Open, send: Send
) -> None:
    send({"n": 1}, {"n": 2})
    command = [sys.executable, "-c", CONSUMER, log.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "2\n"
        queue = open_queue()
        assert queue.receive(2, timeout=0) == []
        killer = threading.Timer(0.3, os.kill, (process.pid, signal.SIGKILL))
        killer.start()
        before = time.monotonic()
        messages = queue.receive(2, timeout=30)
        assert numbers(messages) == [1, 2]
        assert time.monotonic() - before < 20
        assert [message.deliveries for message in messages] == [2, 2]


def test_who_waits_is_woken_by_what_is_given_back(open_queue: Open, send: Send) -> None:
    send({"n": 1})
    one, two = open_queue(), open_queue()
    [message] = one.receive(timeout=0)
    timer = threading.Timer(0.2, message.nack)
    timer.start()
    assert numbers(two.receive(timeout=20)) == [1]
    timer.join()


def test_records_that_retention_has_removed_are_told_once_and_counted(
    log: EmbeddedLog, open_queue: Open, send: Send
) -> None:
    send({"n": -1})
    [held] = open_queue().receive(timeout=0)  # which has the first segment open; another has not
    queue = open_queue()
    for n in range(40):
        send({"n": n, "k": "x" * 100})
    log.alter_topic("t", retention_bytes=3000)
    log.compact("t")
    earliest = log.resolve("t", "earliest").offsets[0]
    assert earliest > 1
    with pytest.raises(OffsetLost):
        queue.receive(timeout=0)
    assert queue.status().lost == earliest - 1
    [message] = queue.receive(timeout=0)
    assert message.offset == earliest
    held.nack()
    with pytest.raises(OffsetLost, match="are lost"):  # after what else there is
        for _ in range(2):
            queue.receive(100, timeout=0)
    assert queue.status().lost == earliest


def test_a_topic_that_was_made_again_is_refused(log: EmbeddedLog, open_queue: Open) -> None:
    queue = open_queue()
    log.delete_topic("t")
    log.create_topic("t", "k STRING")
    with pytest.raises(TopicReplaced):
        queue.receive(timeout=0)
    with pytest.raises(TopicReplaced, match="the queue of group"):
        open_queue()
    queue._closed = True  # what it had is of another topic
    queue._lock.release()
    queue._store.close()
    log.delete_queue("t", "g")
    open_queue().close()


def test_partitions_that_are_added_are_read(log: EmbeddedLog, open_queue: Open, send: Send) -> None:
    queue = open_queue()
    log.alter_topic("t", partitions=3)
    send(*({"n": n, "k": f"k{n}"} for n in range(30)))
    assert sorted(numbers(queue.receive(100, timeout=0))) == list(range(30))


def test_columns_that_are_added_are_delivered(log: EmbeddedLog, open_queue: Open, send: Send) -> None:
    send({"n": 1}, {"n": 2})
    queue = open_queue()
    queue.receive(timeout=0)
    log.alter_topic("t", schema="k STRING NOT NULL, n BIGINT, p INT, at TIMESTAMP, more STRING")
    [message] = queue.receive(timeout=0)
    assert message.value["more"] is None
    message.reject("no")
    assert [dead.value["more"] for dead in queue.dead()] == [None]
