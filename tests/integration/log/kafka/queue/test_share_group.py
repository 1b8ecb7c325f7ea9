"""Settings of a share group, as the broker keeps them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from headwater.errors import UsageError
from headwater.log import Log, QueueSettings
from headwater.log.kafka.queue.share_group import group_id, start_text

pytestmark = pytest.mark.kafka


def test_settings_are_kept_by_the_broker(kafka: Log, name: str) -> None:
    kafka.create_topic(name, "n BIGINT")
    settings = QueueSettings(max_deliveries=3, visible_after="20 seconds")
    kafka.queue(name, "g", settings=settings).close()
    assert kafka.queue(name, "g").settings == settings


def test_what_the_broker_does_not_allow_is_refused(kafka: Log, name: str) -> None:
    kafka.create_topic(name, "n BIGINT")
    with pytest.raises(UsageError, match="refuses the settings"):
        kafka.queue(name, "g", settings=QueueSettings(visible_after="10 hours"))


def test_a_group_begins_at_an_end_or_at_a_time() -> None:
    assert start_text("earliest") == "earliest"
    assert start_text(datetime(2026, 1, 1, tzinfo=UTC)).startswith("by_duration:PT")
    with pytest.raises(UsageError, match="offset"):
        start_text(5)


def test_a_queue_has_a_share_group_of_its_own() -> None:
    assert group_id("t", "g") != group_id("t", "h")
