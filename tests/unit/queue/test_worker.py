"""A worker: calls, acknowledges, gives back, moves to the dead letters, and stops in good order."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest

import headwater
from headwater import Log, Message, Queue, QueueSettings
from headwater.errors import UnknownTopic
from headwater.queue import RejectMessage, Worker, WorkerSettings

QUICK = WorkerSettings(concurrency=4, backoff="10 milliseconds", longest_backoff="20 milliseconds")


@pytest.fixture
def log() -> Iterator[Log]:
    with headwater.open("memory:") as log:
        log.create_topic("t", "n BIGINT")
        yield log


@pytest.fixture
def queue(log: Log) -> Iterator[Queue]:
    with log.queue("t", "g", settings=QueueSettings(max_deliveries=3)) as queue:
        yield queue


def send(log: Log, *numbers: int) -> None:
    with log.producer("t") as producer:
        producer.send_batch([{"n": n} for n in numbers])


def test_every_message_is_done_once_several_at_a_time(log: Log, queue: Queue) -> None:
    send(log, *range(20))
    done, together = list[int](), threading.Barrier(4)

    def call(message: Message) -> None:
        if message.value["n"] < 4:
            together.wait(20)  # which four at once come to
        done.append(message.value["n"])

    status = Worker(queue, call, QUICK).run(until_empty=True)
    assert sorted(done) == list(range(20))
    assert (status.done, status.in_hand, queue.status().depth) == (20, 0, 0)


def test_async_functions_are_awaited_together(log: Log, queue: Queue) -> None:
    send(log, *range(4))
    inside, most = 0, 0

    async def call(message: Message) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0.2)
        inside -= 1

    assert Worker(queue, call, QUICK).run(until_empty=True).done == 4
    assert most > 1


def test_what_fails_is_tried_again_and_dead_in_the_end(log: Log, queue: Queue) -> None:
    send(log, 1, 2)
    tries: dict[int, int] = {}

    def call(message: Message) -> None:
        n = message.value["n"]
        tries[n] = tries.get(n, 0) + 1
        if n == 1 or tries[n] < 2:
            raise ValueError("out of paper")

    worker = Worker(queue, call, QUICK)
    thread = threading.Thread(target=worker.run)
    thread.start()
    until = time.monotonic() + 120
    while queue.status().depth and time.monotonic() < until:
        time.sleep(0.02)
    worker.stop()
    thread.join()
    assert tries == {1: 3, 2: 2}
    status = worker.status()
    assert (status.done, status.retried, status.dead) == (1, 3, 1)
    assert [dead.reason for dead in queue.dead()] == ["ValueError: out of paper"]


def test_a_rejected_message_is_dead_at_once(log: Log, queue: Queue) -> None:
    send(log, 1)

    def call(message: Message) -> None:
        raise RejectMessage("no such address")

    assert Worker(queue, call, QUICK).run(until_empty=True).dead == 1
    assert [(dead.reason, dead.deliveries) for dead in queue.dead()] == [("no such address", 1)]


def test_a_worker_that_is_stopped_finishes_what_it_has_begun_and_no_more(log: Log, queue: Queue) -> None:
    send(log, *range(10))
    begun, go = threading.Semaphore(0), threading.Event()

    def call(message: Message) -> None:
        begun.release()
        go.wait(20)

    worker = Worker(queue, call, QUICK)
    thread = threading.Thread(target=worker.run)
    thread.start()
    for _ in range(4):
        assert begun.acquire(timeout=20)
    worker.stop()
    assert thread.is_alive()
    go.set()
    thread.join(20)
    assert worker.status().done == 4
    assert queue.status().ready == 6


def test_a_message_that_takes_long_is_kept(log: Log) -> None:
    send(log, 1)
    settings = QueueSettings(visible_after="300 milliseconds")
    with log.queue("t", "g", settings=settings) as queue, log.queue("t", "g") as other:
        stolen = list[Message]()

        def call(message: Message) -> None:
            for _ in range(8):
                stolen.extend(other.receive(timeout=0))
                time.sleep(0.1)

        assert Worker(queue, call, QUICK).run(until_empty=True).done == 1
        assert stolen == []


def test_what_was_given_to_another_is_counted(log: Log, queue: Queue) -> None:
    send(log, 1)

    def call(message: Message) -> None:
        message.ack()  # which the worker does: its own comes too late

    assert Worker(queue, call, QUICK).run(until_empty=True).overtaken == 1


def test_a_log_that_refuses_ends_the_work(log: Log, queue: Queue) -> None:
    log.delete_topic("t")
    with pytest.raises(UnknownTopic):
        Worker(queue, lambda message: None, QUICK).run()
    log.create_topic("t", "n BIGINT")


class Untold(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (SystemExit("bye"), "SystemExit: bye"),
        (KeyboardInterrupt(), "KeyboardInterrupt: "),
        (FileNotFoundError("no file \udcff"), "FileNotFoundError: no file \\udcff"),
        (Untold(), "Untold"),
    ],
)
@pytest.mark.parametrize("awaited", [False, True])
def test_whatever_a_function_raises_gives_its_message_back(
    log: Log, queue: Queue, error: BaseException, reason: str, awaited: bool
) -> None:
    send(log, 1)

    def call(message: Message) -> None:
        raise error

    async def call_async(message: Message) -> None:
        raise error

    worker = Worker(queue, call_async if awaited else call, QUICK)
    while not worker.status().dead:
        worker.run(until_empty=True)
    assert (worker.status().retried, worker.status().dead) == (2, 1)
    assert [dead.reason for dead in queue.dead()] == [reason]


def test_the_first_failure_of_each_kind_is_logged(
    log: Log, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    send(log, 0, 1, 2, 3)

    def call(message: Message) -> None:
        raise (KeyError("gest") if message.value["n"] % 2 else ValueError("no"))

    Worker(queue, call, WorkerSettings(concurrency=1, backoff="1 hour")).run(until_empty=True)
    assert [each.getMessage() for each in caplog.records] == [
        "message t:0:0 failed, delivery 1 of 3: ValueError: no",
        "message t:0:1 failed, delivery 1 of 3: KeyError: 'gest'",
    ]


def test_the_status_tells_the_last_error(log: Log, queue: Queue) -> None:
    send(log, 0, 1)
    told: list[str | None] = []

    def call(message: Message) -> None:
        told.append(worker.status().last_error)
        if message.value["n"] == 0:
            raise OSError("no route")

    worker = Worker(queue, call, WorkerSettings(backoff="1 hour", concurrency=1))
    status = worker.run(until_empty=True)
    assert (status.done, status.retried, status.last_error) == (1, 1, "OSError: no route")
    assert told == [None, "OSError: no route"]
    assert status.to_dict()["last_error"] == "OSError: no route"
