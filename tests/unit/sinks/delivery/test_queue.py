"""The outbox as its worker reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from delivery_kit import batch, outbox, sink, webhook
from headwater.errors import Fenced
from headwater.sinks.delivery.delivery import DELIVERED, Outcome
from headwater.sinks.delivery.outbox import DeliveryOutbox
from headwater.sinks.delivery.queue import DeliveryQueue, SettledAttempt, discard, redrive

NONE: frozenset[int] = frozenset()


def filled(home: Path) -> DeliveryOutbox:
    with sink(home, webhook("http://127.0.0.1:1/"), sends=False) as hooks:
        hooks.begin()
        hooks.commit(batch(0, ("a", 1), ("a", 2), ("b", 1)))
    return DeliveryOutbox(outbox(home), "webhook")


def test_of_each_lane_the_first_is_due(tmp_path: Path) -> None:
    with filled(tmp_path) as opened:
        queue = DeliveryQueue(opened, opened.begin(1)[0])
        first, other = queue.due(1.0, 9, NONE).deliveries
        assert [each.ordering_key for each in (first, other)] == ["a", "b"]
        assert queue.due(1.0, 9, frozenset({first.seq})).deliveries == [other]
        queue.settle(
            [SettledAttempt(first, DELIVERED), SettledAttempt(other, Outcome("retry", "no"), due=50.0)]
        )
        due = queue.due(1.0, 9, NONE)
        assert [each.ordering_key for each in due.deliveries] == ["a"] and due.next_due == 50.0
        assert [each.attempts for each in queue.due(60.0, 9, NONE).deliveries] == [0, 1]


def test_what_is_refused_holds_its_lane_until_it_is_redriven_or_given_up(tmp_path: Path) -> None:
    with filled(tmp_path) as opened:
        queue = DeliveryQueue(opened, opened.begin(1)[0])
        first = queue.due(1.0, 1, NONE).deliveries[0]
        queue.settle([SettledAttempt(first, Outcome("refused", "400"))])
        assert [each.ordering_key for each in queue.due(1.0, 9, NONE).deliveries] == ["b"]
        with opened.transaction() as db:
            assert redrive(db) == 2
        assert queue.due(1.0, 9, NONE).deliveries[0].id == first.id
        queue.settle([SettledAttempt(first, Outcome("refused", "400"))])
        with opened.transaction() as db:
            assert discard(db, first.id) and not discard(db, first.id)
        assert [each.ordering_key for each in queue.due(1.0, 9, NONE).deliveries] == ["a", "b"]


def test_nothing_is_due_of_an_endpoint_that_is_set_aside(tmp_path: Path) -> None:
    with filled(tmp_path) as opened:
        queue = DeliveryQueue(opened, opened.begin(1)[0])
        queue.set_aside_endpoint("gone")
        assert queue.due(1.0, 9, NONE).is_dead
        with opened.transaction() as db:
            assert redrive(db) == 3
        assert len(queue.due(1.0, 9, NONE).deliveries) == 2


def test_a_worker_that_was_replaced_is_told_so(tmp_path: Path) -> None:
    with filled(tmp_path) as opened:
        queue = DeliveryQueue(opened, opened.begin(1)[0])
        opened.begin(1)
        with pytest.raises(Fenced):
            queue.due(1.0, 9, NONE)
        with pytest.raises(Fenced):
            queue.settle([])
