"""What needs attention is said in a sentence, with what to do; steady state says nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

import headwater
from figures_kit import note, orders_shop, set_aside
from headwater import Attention, ClockSkew, Pipeline
from headwater.api.figures.attention import _capture, _undelivered, _waiting
from headwater.api.figures.overview import OverviewInputs
from headwater.capture.figures.status import CaptureStatus
from headwater.engine.figures.progress import Progress
from headwater.engine.source.watermark import NEVER
from headwater.errors import HeadwaterError
from headwater.sinks.delivery.figures import DeliveryStatus


@pytest.fixture
def shop(tmp_path: Path) -> Pipeline:
    return orders_shop(tmp_path)


def told(shop: Pipeline, known: OverviewInputs | None = None) -> Attention:
    [found] = headwater.overview(shop, known).attention
    return found


def test_steady_state_says_nothing(shop: Pipeline) -> None:
    note(shop, alert=None)
    assert headwater.overview(shop).attention == ()


def test_too_many_late_rows_are_told_with_the_lateness_that_would_have_kept_them(shop: Pipeline) -> None:
    note(shop)
    with headwater.open(shop.log) as log:
        report = headwater.lateness(log, "orders", pipeline=shop)
    assert told(shop).hint == "`headwater lateness orders` tells how long to wait for them"
    found = told(shop, OverviewInputs(lateness={"orders": report}))
    assert found.message == '10.0% of the rows of view "seen" came too late (20 of 200)'
    assert (found.severity, found.kind, found.name) == ("late", "node", "seen")


def test_a_lateness_that_would_have_kept_the_rows_is_named(shop: Pipeline) -> None:
    note(shop)
    with headwater.open(shop.log) as log:
        with log.producer("orders", id="till") as producer:
            producer.send_batch([{"id": 3, "item": "tea", "at": 60_000_000}])
            producer.flush()
            producer.send_batch([{"id": 4, "item": "tea", "at": 31_000_000}])
        report = headwater.lateness(log, "orders", pipeline=shop)
    found = told(shop, OverviewInputs(lateness={"orders": report}))
    assert found.hint == 'lateness="30 seconds" for source "orders" would have kept 99.9% of its rows'


def test_a_broken_node_is_told_with_its_error_and_its_hint(shop: Pipeline) -> None:
    note(shop, alert=None, state="broken", error=HeadwaterError("it failed", detail="why", hint="do this"))
    found = told(shop)
    assert (found.severity, found.message) == ("broken", 'view "seen" is broken: it failed: why')
    assert found.hint == "do this"


def test_dead_letters_are_told_with_the_newest_error(shop: Pipeline) -> None:
    set_aside(shop, "no number", "no item")
    found = told(shop)
    assert found.message == '2 records are set aside because the code of view "seen" fails: no item'
    assert found.severity == "dead" and found.since is not None
    assert found.to_dict()["node"] == "seen"


def test_deliveries_that_are_set_aside_are_told_with_what_to_do(shop: Pipeline) -> None:
    dead = DeliveryStatus(0, 2, 5, dead="no answer in time")
    [found] = _undelivered(shop, Progress("seen", "view", 0, None, (), 0, None, None, deliveries=dead))
    message = 'view "seen": 2 deliveries are set aside: the endpoint stays dead (no answer in time)'
    assert (found.severity, found.message) == ("dead", message)
    assert found.hint == "mend it, then `headwater dead redrive`"


def test_a_producer_whose_clock_is_ahead_is_told_once(shop: Pipeline) -> None:
    note(shop, alert=None, ahead=(ClockSkew("orders", 0, "till", 3_600_000_000),))
    assert told(shop).message.startswith('producer "till" of topic "orders" is 1:00:00 ahead of time')
    assert told(shop).kind == "topic"


def test_an_input_that_is_silent_and_waited_for_is_told_with_since_when(shop: Pipeline) -> None:
    silent = Progress("seen", "view", 0, None, (), 0, None, None, waits_for=("orders", 1_767_323_045_000_000))
    [found] = _waiting(shop, silent)
    assert (
        'waits for source "orders", of which nothing was received since 2026-01-02 03:04:05' in found.message
    )
    recent = Progress("seen", "view", 0, None, (), 0, None, None, waits_for=("orders", 1 << 62))
    assert list(_waiting(shop, recent)) == []


def test_a_stream_that_is_waited_for_is_told_when_it_has_fallen_silent_not_before_it_begins(
    shop: Pipeline,
) -> None:
    silent = Progress("seen", "view", 0, None, (), 0, None, None, waits_for=("copies", 1_767_323_045_000_000))
    [found] = _waiting(shop, silent)
    assert found.hint == "see why it gives nothing"  # a stream has no idle=
    begun = Progress("seen", "view", 0, None, (), 0, None, None, waits_for=("copies", NEVER))
    assert list(_waiting(shop, begun)) == []


def test_a_capture_tells_what_keeps_it_and_what_it_keeps() -> None:
    assert list(_capture(CaptureStatus("crm", "streaming"))) == []
    [alert] = _capture(CaptureStatus("crm", "streaming", alert="the database keeps 3 GB for it"))
    assert alert.message == 'capture "crm": the database keeps 3 GB for it'
    broken = CaptureStatus("crm", "broken", error=HeadwaterError("refused"), stopped={"users": "no key"})
    assert [(each.severity, each.name) for each in _capture(broken)] == [("broken", "crm")] * 2
    [silent] = _capture(CaptureStatus("crm", "silent", noted=5))
    assert silent.severity == "waiting" and silent.since is not None
