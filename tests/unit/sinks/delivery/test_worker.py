"""The worker against a receiver that fails as it likes, and runners that come and go."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delivery_kit import CUT, QUICK, Answer, Receiver, Request, batch, outbox, receiving, sink, until, webhook
from headwater.errors import Fenced, SinkUnavailable
from headwater.sinks.delivery.figures import delivery_status, redrive_deliveries, set_aside
from headwater.sinks.delivery.queue import DeliveryQueue, DueDeliveries
from soaking import examples

ANSWERS = st.lists(st.sampled_from([204, 204, 204, 500, 429, CUT, 400, 410]), max_size=12)
"""What the first attempts are answered; after them all are taken."""
KEYS = st.lists(st.lists(st.sampled_from("abc"), max_size=5), min_size=1, max_size=4)


@pytest.fixture(scope="module")
def server() -> Iterator[Receiver]:
    with receiving() as started:
        yield started


def waiting(home: Path) -> int:
    status = delivery_status(outbox(home))
    assert status is not None
    return status.waiting + status.set_aside


def first_arrivals(requests: list[Request]) -> dict[str, Request]:
    arrived = dict[str, Request]()
    for each in requests:
        assert arrived.setdefault(each.id, each).body == each.body, "an id is one message's"
    return arrived


def delivered_all(home: Path) -> bool:
    """Redrive what is set aside, and tell whether all has arrived."""
    if set_aside(outbox(home)):
        redrive_deliveries(outbox(home))
    return waiting(home) == 0


@given(KEYS, ANSWERS, st.sets(st.integers(0, 3)))
@examples(25)
def test_every_delivery_arrives_and_in_the_order_of_its_key(
    server: Receiver, batches: list[list[str]], answers: list[int], restarts: set[int]
) -> None:
    server.clear()
    left = iter(answers)
    server.answer = lambda request: Answer(next(left, 204))
    declared = webhook(server.url, policy=replace(QUICK, drain=0.0))
    sent = list[tuple[str, int]]()
    with tempfile.TemporaryDirectory() as home:
        hooks = sink(Path(home), declared)
        hooks.begin()
        for number, keys in enumerate(batches):
            rows = [(key, len(sent) + place) for place, key in enumerate(keys)]
            sent += rows
            assert hooks.commit(batch(number, *rows))
            if number in restarts:
                hooks.close()
                hooks = sink(Path(home), declared)
                assert hooks.begin() == number
                assert not hooks.commit(batch(number, *rows))
        until(lambda: delivered_all(Path(home)))
        hooks.close()
    arrived = [each.message["data"] for each in first_arrivals(server.arrived()).values()]
    for key in "abc":
        numbers = [number for name, number in sent if name == key]
        assert [each["n"] for each in arrived if each["k"] == key] == numbers


def test_an_endpoint_that_stays_dead_is_set_aside_and_the_pipeline_goes_on(tmp_path: Path) -> None:
    declared = webhook("http://127.0.0.1:1/", policy=replace(QUICK, retry_timeout=0.05))
    with sink(tmp_path, declared) as hooks:
        hooks.begin()
        hooks.commit(batch(0, ("a", 1), ("b", 1)))
        until(lambda: (status := delivery_status(outbox(tmp_path))) and status.dead)
        assert hooks.commit(batch(1, ("a", 2)))
    status = delivery_status(outbox(tmp_path))
    assert status is not None and (status.waiting, status.set_aside) == (0, 3)
    assert status.dead == "connection refused"


def test_a_message_that_fails_for_long_is_set_aside_while_others_arrive(
    tmp_path: Path, server: Receiver
) -> None:
    server.clear()
    server.answer = lambda request: Answer(500 if request.message["data"]["k"] == "bad" else 204)
    declared = webhook(server.url, policy=replace(QUICK, retry_timeout=0.1))
    with sink(tmp_path, declared) as hooks:
        hooks.begin()
        hooks.commit(batch(0, ("bad", 1), ("bad", 2)))
        number = 1
        while not set_aside(outbox(tmp_path)):
            hooks.commit(batch(number, ("good", number)))
            number += 1
        status = delivery_status(outbox(tmp_path))
    assert status is not None and status.dead is None and status.set_aside == 2
    assert all(each.message["data"]["n"] == 1 for each in server.requests if b"bad" in each.body)


def test_a_worker_whose_runner_was_replaced_sends_nothing_more(tmp_path: Path, server: Receiver) -> None:
    server.clear()
    with (
        sink(tmp_path, webhook(server.url)) as first,
        sink(tmp_path, webhook(server.url), sends=False) as next_,
    ):
        first.begin()
        next_.begin()
        next_.commit(batch(0, ("a", 1)))
        with pytest.raises(Fenced):
            first.commit(batch(1, ("a", 2)))
        assert first._worker is not None
        first._worker.wake()
        until(lambda: first._worker is not None and not first._worker._thread.is_alive())
    assert server.requests == []
    assert waiting(tmp_path) == 1


def test_what_waits_is_sent_when_the_runner_ends(tmp_path: Path, server: Receiver) -> None:
    server.clear()
    with sink(tmp_path, webhook(server.url, ())) as hooks:
        hooks.begin()
        hooks.commit(batch(0, *((str(number), number) for number in range(50))))
    assert len(server.requests) == 50
    assert waiting(tmp_path) == 0


def test_a_disk_that_fails_for_a_while_stops_no_delivery(
    tmp_path: Path, server: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.clear()
    failures = iter([SinkUnavailable("the disk is away"), ValueError("nobody thought of it")])
    due = DeliveryQueue.due

    def failing(queue: DeliveryQueue, *arguments: Any) -> DueDeliveries:
        error = next(failures, None)
        if error is not None:
            raise error
        return due(queue, *arguments)

    monkeypatch.setattr(DeliveryQueue, "due", failing)
    with sink(tmp_path, webhook(server.url)) as hooks:
        hooks.begin()
        hooks.commit(batch(0, ("a", 1)))
        until(lambda: len(server.arrived()) == 1)


def test_an_answer_that_comes_when_the_runner_has_ended_is_noted(tmp_path: Path, server: Receiver) -> None:
    server.clear()
    slow = threading.Event()
    server.answer = lambda request: Answer(204 if slow.wait(0.2) or True else 0)
    with sink(tmp_path, webhook(server.url, policy=replace(QUICK, drain=0.0))) as hooks:
        hooks.begin()
        hooks.commit(batch(0, ("a", 1)))
        assert hooks._worker is not None
        until(lambda: hooks._worker is not None and hooks._worker._under_way)
    assert waiting(tmp_path) == 0
