"""What is taken in: as much as is asked for, or all that must be known before any is delivered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headwater.log.embedded import EmbeddedLog
from headwater.log.embedded.queue import intake
from headwater.log.queue_settings import QueueSettings

Open = Callable[..., Any]


def taken_in(queue: Any) -> int:
    return int(queue._store.rows("SELECT COUNT(*) FROM messages")[0][0])


def test_what_waits_needs_no_row(open_queue: Open, send: Any) -> None:
    send(*({"n": n} for n in range(50)))
    queue = open_queue()
    queue.receive(3, timeout=0)
    assert taken_in(queue) == 3
    assert queue.status().ready == 47


def test_priorities_need_all(open_queue: Open, send: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "CHUNK", 7)
    send(*({"n": n, "p": n} for n in range(50)))
    queue = open_queue(QueueSettings(priority="p"))
    assert [message.value["n"] for message in queue.receive(2, timeout=0)] == [49, 48]
    assert taken_in(queue) == 50


def test_the_search_behind_a_busy_key_has_a_bound(
    open_queue: Open, send: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "CHUNK", 5)
    monkeypatch.setattr(intake, "MOST_BLOCKED", 10)
    send(*({"k": "busy", "n": n} for n in range(40)), {"k": "other", "n": 40})
    queue = open_queue(QueueSettings(ordered=True))
    [message] = queue.receive(5, timeout=0)
    assert 10 <= taken_in(queue) < 20
    seen = [message.value["n"]]
    while seen[-1] != 40:
        message.ack()
        [message] = queue.receive(1, timeout=0)
        seen.append(message.value["n"])
    assert seen[:-1] == list(range(len(seen) - 1))


def test_what_is_tried_again_comes_first(log: EmbeddedLog, open_queue: Open, send: Any) -> None:
    send({"n": 1}, {"n": 2})
    queue = open_queue()
    queue.receive(timeout=0)[0].reject("no")
    queue.redrive()
    [message] = queue.receive(timeout=0)
    assert (message.value["n"], message.topic) == (1, "t.g.retry")


def test_all_that_is_redriven_is_taken_in_though_enough_is_ready(
    open_queue: Open, send: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "CHUNK", 3)
    send(*({"k": f"k{n}", "n": n} for n in range(20)))
    queue = open_queue(QueueSettings(ordered=True))
    for message in queue.receive(8, timeout=0):
        message.reject("no")
    send({"k": "k7", "n": 20})
    queue.redrive()
    assert [message.value["n"] for message in queue.receive(8, timeout=0)] == list(range(8))


@pytest.mark.parametrize("counts", [(4,), (2, 5), (3, 4, 9)])
def test_a_key_s_order_is_kept_where_partitions_are_added(
    log: EmbeddedLog, open_queue: Open, send: Any, monkeypatch: pytest.MonkeyPatch, counts: tuple[int, ...]
) -> None:
    monkeypatch.setattr(intake, "CHUNK", 5)
    queue = open_queue(QueueSettings(ordered=True))
    keys = ["a", "b", "c", "d", "e"]
    sent = 0
    for count in (0, *counts):
        if count:
            log.alter_topic("t", partitions=count)
        for _ in range(12):
            sent += 1
            send(*({"k": key, "n": sent} for key in keys))
    assert seen(queue) == {key: list(range(1, sent + 1)) for key in keys}
    late = open_queue(QueueSettings(ordered=True), group="late")
    assert seen(late) == {key: list(range(1, sent + 1)) for key in keys}


def test_a_queue_from_now_on_does_not_wait_for_what_was_before_partitions_were_added(
    log: EmbeddedLog, send: Any
) -> None:
    send(*({"n": n} for n in range(10)))
    log.alter_topic("t", partitions=3)
    with log.queue("t", group="new", start="latest", settings=QueueSettings(ordered=True)) as queue:
        send(*({"k": key, "n": 1} for key in "abcdefgh"))
        assert len(queue.receive(20, timeout=0)) == 8


def seen(queue: Any) -> dict[str, list[int]]:
    order: dict[str, list[int]] = {}
    while messages := queue.receive(3, timeout=0):
        for message in messages:
            order.setdefault(message.value["k"], []).append(message.value["n"])
            message.ack()
    return order
