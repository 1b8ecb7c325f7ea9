"""Webhooks against a real receiver: what it gets, whether it can trust it, and what its answers lead to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from standardwebhooks import Webhook

from delivery_kit import (
    CUT,
    SECRET,
    SILENT,
    Answer,
    Receiver,
    Request,
    batch,
    outbox,
    receiving,
    sink,
    until,
    webhook,
)
from headwater.sinks.delivery.delivery import OutgoingDelivery
from headwater.sinks.delivery.figures import (
    delivery_status,
    discard_delivery,
    redrive_deliveries,
    set_aside,
)
from headwater.sinks.delivery.http_client import HttpClient
from headwater.sinks.webhook.transport import WebhookTransport
from headwater.webhook_signature import signing_keys


@pytest.fixture(scope="module")
def server() -> Iterator[Receiver]:
    with receiving() as started:
        yield started


@pytest.fixture
def receiver(server: Receiver) -> Receiver:
    server.clear()
    return server


def test_rows_arrive_signed_with_what_they_do_to_their_key(tmp_path: Path, receiver: Receiver) -> None:
    with sink(tmp_path, webhook(receiver.url)) as hooks:
        hooks.begin()
        hooks.commit(batch(0, ("a", 1), ("a", 2)))
        hooks.commit(batch(1, ("a", None), ("never there", None)))
        until(lambda: len(receiver.requests) == 3)
    told = [(each.message["type"], each.message["data"]) for each in receiver.requests]
    assert told == [("insert", {"k": "a", "n": 1}), ("update", {"k": "a", "n": 2}), ("delete", {"k": "a"})]
    for request in receiver.requests:
        assert Webhook(SECRET).verify(request.body, request.headers) == request.message
    assert len({each.id for each in receiver.requests}) == 3


def test_each_answer_has_its_consequence(tmp_path: Path, receiver: Receiver) -> None:
    statuses = iter([500, 503, 429, CUT, 408, 200])
    receiver.answer = lambda request: Answer(next(statuses))
    with sink(tmp_path, webhook(receiver.url)) as hooks:
        hooks.begin()
        hooks.commit(batch(0, ("a", 1)))
        until(lambda: len(receiver.requests) == 6)
    assert len({each.id for each in receiver.requests}) == 1
    status = delivery_status(outbox(tmp_path))
    assert status is not None and (status.waiting, status.set_aside, status.delivered) == (0, 0, 1)


def test_an_endpoint_that_says_when_is_left_alone_until_then(tmp_path: Path, receiver: Receiver) -> None:
    receiver.answer = lambda request: Answer(429, {"Retry-After": "3600"})
    with sink(tmp_path, webhook(receiver.url)) as hooks:
        hooks.begin()
        hooks.commit(batch(0, ("a", 1)))
        until(lambda: len(receiver.requests) == 1)
        hooks.commit(batch(1, ("b", 1)))
    assert len(receiver.requests) == 1
    status = delivery_status(outbox(tmp_path))
    assert status is not None and status.waiting == 2 and status.error == "the endpoint answers 429"


def test_a_refused_delivery_holds_its_key_back_and_no_other(tmp_path: Path, receiver: Receiver) -> None:
    def answer(request: Request) -> Answer:
        return Answer(400 if request.message["data"] == {"k": "a", "n": 1} and refuses else 204)

    refuses, receiver.answer = True, answer
    with sink(tmp_path, webhook(receiver.url)) as hooks:
        hooks.begin()
        hooks.commit(batch(0, ("a", 1), ("b", 1), ("a", 2), ("b", 2)))
        until(lambda: len(receiver.requests) == 3)
        until(lambda: (status := delivery_status(outbox(tmp_path))) and status.delivered == 2)
        until(lambda: set_aside(outbox(tmp_path)))
        status = delivery_status(outbox(tmp_path))
        assert status is not None and (status.waiting, status.set_aside) == (0, 2)
        assert status.alert is not None and "set aside" in status.alert
        (letter,) = set_aside(outbox(tmp_path))
        assert letter.error == "the endpoint answers 400" and '"n":1' in letter.body
        refuses = False
        assert redrive_deliveries(outbox(tmp_path)) == 2
        until(lambda: len(receiver.arrived()) == 4)
    numbers = [each.message["data"]["n"] for each in receiver.arrived() if each.message["data"]["k"] == "a"]
    assert numbers == [1, 2]


def test_a_delivery_that_is_given_up_lets_the_next_one_go(tmp_path: Path, receiver: Receiver) -> None:
    receiver.answer = lambda request: Answer(422 if request.message["data"]["n"] == 1 else 204)
    with sink(tmp_path, webhook(receiver.url)) as hooks:
        hooks.begin()
        hooks.commit(batch(0, ("a", 1), ("a", 2)))
        until(lambda: set_aside(outbox(tmp_path)))
        (letter,) = set_aside(outbox(tmp_path))
        assert not discard_delivery(outbox(tmp_path), "msg_unknown")
        assert discard_delivery(outbox(tmp_path), letter.id)
        until(lambda: len(receiver.arrived()) == 1)


def test_an_endpoint_that_is_gone_gets_nothing_until_it_is_redriven(
    tmp_path: Path, receiver: Receiver
) -> None:
    receiver.answer = lambda request: Answer(410)
    with sink(tmp_path, webhook(receiver.url)) as hooks:
        hooks.begin()
        hooks.commit(batch(0, ("a", 1)))
        until(lambda: set_aside(outbox(tmp_path)))
        assert hooks.commit(batch(1, ("a", 2), ("b", 1)))  # the pipeline goes on
        status = delivery_status(outbox(tmp_path))
        assert status is not None and (status.set_aside, status.dead) == (3, "the endpoint answers 410")
        assert len(receiver.requests) == 1
        receiver.answer = lambda request: Answer()
        assert redrive_deliveries(outbox(tmp_path)) == 3
        until(lambda: len(receiver.arrived()) == 3)


def test_secrets_that_take_each_others_place_both_sign(receiver: Receiver) -> None:
    other = "whsec_" + "A" * 32
    transport = WebhookTransport(receiver.url, signing_keys([SECRET, other]))
    assert transport.send(OutgoingDelivery(1, "msg_1", b"{}")).result == "delivered"
    transport.close()
    for secret in (SECRET, other):
        Webhook(secret).verify(receiver.requests[0].body, receiver.requests[0].headers)


def test_no_answer_in_time_is_tried_again(receiver: Receiver) -> None:
    receiver.answer = lambda request: Answer(SILENT)
    transport = WebhookTransport(receiver.url, signing_keys(SECRET), HttpClient(timeout=0.05))
    outcome = transport.send(OutgoingDelivery(1, "msg_1", b"{}"))
    assert (outcome.result, outcome.reason) == ("retry", "no answer in time")


def test_an_endpoint_that_does_not_listen_is_tried_again() -> None:
    outcome = WebhookTransport("http://127.0.0.1:1/", signing_keys(SECRET)).send(
        OutgoingDelivery(1, "msg_1", b"{}")
    )
    assert (outcome.result, outcome.reason) == ("retry", "connection refused")
