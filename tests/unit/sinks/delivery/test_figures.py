"""What is told of an outbox."""

from __future__ import annotations

from pathlib import Path

from delivery_kit import batch, outbox, sink, webhook
from headwater.sinks.delivery.figures import (
    DeliveryStatus,
    delivery_status,
    discard_delivery,
    redrive_deliveries,
    set_aside,
)


def test_an_outbox_that_is_not_there_has_nothing_to_tell(tmp_path: Path) -> None:
    file = tmp_path / "outbox.db"
    assert delivery_status(file) is None
    assert (set_aside(file), redrive_deliveries(file), discard_delivery(file, "msg_1")) == ([], 0, False)
    assert not file.exists()


def test_what_waits_is_counted_while_a_runner_has_the_file(tmp_path: Path) -> None:
    with sink(tmp_path, webhook("http://127.0.0.1:1/"), sends=False) as hooks:
        hooks.begin()
        hooks.commit(batch(0, ("a", 1), ("b", 1)))
        assert delivery_status(outbox(tmp_path)) == DeliveryStatus(2, 0, 0)


def test_only_what_is_set_aside_is_an_alert() -> None:
    assert DeliveryStatus(9, 0, 0, "the endpoint answers 500").alert is None
    assert "stays dead (no answer" in (DeliveryStatus(0, 9, 0, dead="no answer in time").alert or "")
    assert "refused (the endpoint answers 400)" in (
        DeliveryStatus(0, 1, 0, "the endpoint answers 400").alert or ""
    )
