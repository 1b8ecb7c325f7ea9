"""Queues: each message is one consumer's until it is acknowledged, given back or dead; on every backend."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from contract_kit import Backend, rows_of
from headwater import Log, Message, Queue, QueueSettings
from headwater.errors import Fenced, HeadwaterError, UsageError

SECONDS = 20.0
"""How long a message is waited for that must come."""


@pytest.fixture
def topic(log: Log, name: str) -> str:
    log.create_topic(name, "k STRING NOT NULL, n BIGINT", key="k", partitions=2)
    return name


@pytest.fixture
def queue(log: Log, topic: str) -> Iterator[Queue]:
    with log.queue(topic, "workers") as queue:
        yield queue


def send(log: Log, topic: str, *numbers: int) -> None:
    with log.producer(topic) as producer:
        for number in numbers:
            producer.send({"k": f"k{number % 5}", "n": number}, headers={"trace": f"t{number}"})


def take(queue: Queue, count: int) -> list[Message]:
    """Receive until ``count`` messages have come."""
    found: list[Message] = []
    deadline = time.monotonic() + SECONDS
    while len(found) < count and time.monotonic() < deadline:
        found += queue.receive(count - len(found), timeout=1)
    assert len(found) == count
    return found


def numbers(messages: list[Message]) -> list[int]:
    return sorted(message.value["n"] for message in messages)


def test_a_message_has_the_row_its_key_its_headers_and_its_place(log: Log, queue: Queue) -> None:
    send(log, queue.topic, 7)
    [message] = take(queue, 1)
    assert (message.value, message.key) == ({"k": "k2", "n": 7}, "k2")
    assert (message.headers["trace"], message.deliveries) == (b"t7", 1)
    assert message.id == f"{queue.topic}:{message.partition}:{message.offset}"
    message.ack()


def test_what_is_acknowledged_is_never_delivered_again(backend: Backend, topic: str) -> None:
    send(backend.log, topic, *range(20))
    with backend.log.queue(topic, "workers") as queue:
        messages = take(queue, 20)
        assert numbers(messages) == list(range(20))
        messages[0].ack()
        queue.ack(messages[1:])
        assert queue.receive(1, timeout=0.5) == []
    with backend.again().queue(topic, "workers") as queue:
        assert queue.receive(1, timeout=0.5) == []


def test_many_consumers_share_the_messages_of_a_topic(backend: Backend, topic: str) -> None:
    send(backend.log, topic, *range(60))
    found: list[int] = []

    def work(log: Log) -> None:
        with log.queue(topic, "workers") as queue:
            idle = 0
            while idle < 3 and len(found) < 60:
                messages = queue.receive(3, timeout=1)
                idle = 0 if messages else idle + 1
                for message in messages:
                    found.append(message.value["n"])
                    message.ack()

    threads = [threading.Thread(target=work, args=(backend.again(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(60))


def test_groups_have_every_message_each(log: Log, topic: str) -> None:
    send(log, topic, 1, 2, 3)
    with log.queue(topic, "mailers") as one, log.queue(topic, "printers") as other:
        assert numbers(take(one, 3)) == numbers(take(other, 3)) == [1, 2, 3]


def test_what_is_given_back_is_delivered_again_and_counted(log: Log, queue: Queue) -> None:
    send(log, queue.topic, 1)
    [message] = take(queue, 1)
    message.nack()
    [again] = take(queue, 1)
    assert (again.value, again.deliveries) == (message.value, 2)
    again.ack()


def test_what_a_consumer_has_when_it_is_closed_is_given_back_at_once(backend: Backend, topic: str) -> None:
    send(backend.log, topic, 1)
    with backend.log.queue(topic, "workers") as queue:
        [message] = take(queue, 1)
    before = time.monotonic()
    with backend.again().queue(topic, "workers") as queue:
        [again] = take(queue, 1)
        assert again.value == message.value
        assert time.monotonic() - before < 15
        again.ack()


def test_an_acknowledgement_of_what_was_given_back_is_fenced(log: Log, queue: Queue) -> None:
    send(log, queue.topic, 1)
    [message] = take(queue, 1)
    message.nack()
    for late in (message.ack, message.nack, lambda: message.reject("never")):
        with pytest.raises(Fenced, match="no longer yours"):
            late()
    [again] = take(queue, 1)
    again.ack()
    with pytest.raises(Fenced):
        again.ack()


def test_of_many_acknowledgements_those_that_are_in_time_count(log: Log, queue: Queue) -> None:
    send(log, queue.topic, 1, 2)
    one, two = take(queue, 2)
    one.nack()
    with pytest.raises(Fenced, match=one.id):
        queue.ack([one, two])
    [again] = take(queue, 1)
    assert again.value == one.value
    again.ack()
    assert queue.receive(1, timeout=0.5) == []


def test_a_rejected_message_is_a_dead_letter_of_its_group(log: Log, queue: Queue) -> None:
    send(log, queue.topic, 1, 2)
    rejected = next(each for each in take(queue, 2) if each.value["n"] == 1)
    rejected.reject("no such address")
    [dead] = queue.dead()
    assert (dead.value, dead.headers) == ({"k": "k1", "n": 1}, {"trace": b"t1"})
    assert (dead.reason, dead.deliveries, dead.origin) == ("no such address", 1, rejected.id)
    assert [row["n"] for row in rows_of(log, f"{queue.topic}.workers.dead")] == [1]


def test_a_message_that_is_given_back_too_often_is_dead(log: Log, topic: str) -> None:
    send(log, topic, 1)
    with log.queue(topic, "workers", settings=QueueSettings(max_deliveries=2)) as queue:
        for _ in range(2):
            [message] = take(queue, 1)
            message.nack(reason="out of paper")
        assert queue.receive(1, timeout=0.5) == []
        [dead] = queue.dead()
        assert (dead.reason, dead.deliveries) == ("out of paper", 2)


def test_dead_letters_are_redriven_to_their_group_alone(log: Log, topic: str) -> None:
    send(log, topic, 1)
    with log.queue(topic, "workers") as queue, log.queue(topic, "others") as others:
        take(others, 1)[0].ack()
        take(queue, 1)[0].reject("too early")
        assert queue.redrive() == 1
        assert list(queue.dead()) == []
        [again] = take(queue, 1)
        assert (again.value, again.key, again.deliveries) == ({"k": "k1", "n": 1}, "k1", 1)
        assert again.headers["trace"] == b"t1"
        again.reject("too late")
        assert [each.reason for each in queue.dead()] == ["too late"]
        assert queue.redrive() == 1
        take(queue, 1)[0].ack()
        assert (queue.redrive(), others.receive(1, timeout=0.5)) == (0, [])


def test_a_queue_over_dead_letters_keeps_the_headers_of_their_first_death(log: Log, topic: str) -> None:
    send(log, topic, 1)
    with log.queue(topic, "workers") as queue:
        take(queue, 1)[0].reject("first")
    with log.queue(f"{topic}.workers.dead", "look") as queue:
        [message] = take(queue, 1)
        before = message.headers
        assert (before["trace"], before["headwater.reason"]) == (b"t1", b"first")
        message.reject("second")
        [dead] = queue.dead()
        assert (dead.headers, dead.reason, dead.origin) == (before, "second", message.id)
        assert queue.redrive() == 1
        [again] = take(queue, 1)
        assert again.headers == before
        again.ack()


def test_dead_letters_can_be_purged(log: Log, queue: Queue) -> None:
    send(log, queue.topic, 1)
    take(queue, 1)[0].reject("never")
    assert (queue.purge(dead=True), list(queue.dead()), queue.redrive()) == (1, [], 0)


def test_a_queue_that_begins_at_the_end_has_what_comes_then(log: Log, topic: str) -> None:
    send(log, topic, 1)
    with log.queue(topic, "workers", start="latest") as queue:
        queue.receive(1, timeout=2)
        send(log, topic, 2)
        [message] = take(queue, 1)
        assert message.value["n"] == 2
        message.ack()


def test_who_waits_gets_what_is_sent_meanwhile(log: Log, queue: Queue) -> None:
    timer = threading.Timer(0.5, send, (log, queue.topic, 1))
    timer.start()
    messages = queue.receive(5, timeout=SECONDS)
    assert numbers(messages) == [1]
    queue.ack(messages)
    timer.join()


def test_waiting_in_vain_ends_in_time(queue: Queue) -> None:
    before = time.monotonic()
    assert queue.receive(1, timeout=0.3) == []
    assert 0.2 < time.monotonic() - before < 10


def test_a_compacted_topic_is_no_queue(log: Log, name: str) -> None:
    log.create_topic(name, "id BIGINT NOT NULL", key="id", cleanup="compact")
    with pytest.raises(UsageError, match="compacted"):
        log.queue(name, "workers")


def test_what_cannot_be_meant_is_refused(log: Log, topic: str, queue: Queue) -> None:
    with pytest.raises(UsageError, match="messages at once"):
        queue.receive(0)
    with pytest.raises(UsageError):
        QueueSettings(max_deliveries=0)
    with pytest.raises(HeadwaterError, match="no topic"):
        log.queue(f"{topic}-not", "workers")
    with pytest.raises(HeadwaterError, match="group"):
        log.queue(topic, "wor/kers")


def test_a_closed_queue_says_so(log: Log, topic: str) -> None:
    queue = log.queue(topic, "workers")
    queue.close()
    queue.close()
    with pytest.raises(UsageError, match="closed"):
        queue.receive(1, timeout=0)


@pytest.mark.parametrize(
    "settings",
    [
        QueueSettings(ordered=True),
        QueueSettings(priority="n"),
        QueueSettings(delay="1 minute"),
        QueueSettings(time_to_live="1 minute"),
    ],
)
def test_order_priorities_and_times_are_kept_or_refused_with_the_reason(
    backend: Backend, topic: str, settings: QueueSettings
) -> None:
    if backend.kind == "kafka":
        with pytest.raises(UsageError, match="Kafka"):
            backend.log.queue(topic, "workers", settings=settings)
    else:
        backend.log.queue(topic, "workers", settings=settings).close()


def test_a_message_is_delayed_and_kept_or_that_is_refused_with_the_reason(log: Log, queue: Queue) -> None:
    send(log, queue.topic, 1)
    [message] = take(queue, 1)
    if not queue.delays:
        with pytest.raises(UsageError, match="Kafka"):
            message.nack(delay="1 second")
        with pytest.raises(UsageError, match="Kafka"):
            message.extend()
        message.ack()
        return
    message.extend("1 minute")
    message.nack(delay="400 milliseconds")
    before = time.monotonic()
    [again] = take(queue, 1)
    assert time.monotonic() - before > 0.3
    again.ack()


def test_every_queue_is_listed_with_what_is_dead(backend: Backend, topic: str) -> None:
    send(backend.log, topic, 1, 2, 3)
    backend.log.create_topic(f"{topic}.more", "n BIGINT")  # whose name begins alike
    with backend.log.queue(topic, "workers") as queue, backend.log.queue(topic, "others") as others:
        first = take(queue, 3)[0]
        first.reject("no such address")
        others.ack(take(others, 3))
        told = {each.group: each for each in backend.again().queues() if each.topic.startswith(topic)}
        assert {each.topic for each in told.values()} == {topic}
        assert {name: each.dead for name, each in told.items()} == {"workers": 1, "others": 0}
        assert all(backend.log.has_queue(topic, name) for name in told)
        if backend.kind == "kafka":
            assert told["workers"].to_dict()["depth"] is None
        else:
            assert told == {each.group: each.status() for each in (queue, others)} | {
                "workers": replace(queue.status(), oldest=told["workers"].oldest)
            }


def test_a_queue_whose_topic_was_deleted_is_listed_with_the_reason_or_gone_with_it(
    backend: Backend, topic: str
) -> None:
    send(backend.log, topic, 1)
    with backend.log.queue(topic, "workers") as queue:
        take(queue, 1)[0].ack()
    backend.log.delete_topic(topic)
    told = [each for each in backend.log.queues() if each.topic == topic]
    if backend.kind == "kafka":
        assert told == []
    else:
        assert [(each.group, each.depth) for each in told] == [("workers", None)]
        assert "no topic" in str(told[0].problem)


def test_a_topic_of_somebody_else_is_not_taken_for_dead_letters(log: Log, topic: str) -> None:
    other = f"{topic}.workers.dead"
    log.create_topic(other, "k STRING, n BIGINT")
    with log.producer(other) as producer:
        producer.send({"k": "mine", "n": 1})
    with pytest.raises(HeadwaterError, match="somebody else"):
        log.queue(topic, "workers")
