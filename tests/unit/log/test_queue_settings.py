"""Settings of a queue: what can be meant, and what a topic's records can have."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from headwater import topic as topics
from headwater.errors import UsageError
from headwater.log.queue_settings import QueueSettings, check, fixed

TOPIC = topics.create("emails", "k STRING NOT NULL, urgent INT, at TIMESTAMP, wait DOUBLE", key="k")


def test_lengths_of_time_have_one_form() -> None:
    assert QueueSettings(visible_after="60 seconds") == QueueSettings(visible_after=timedelta(minutes=1))


def test_a_plain_queue_has_nothing_that_its_state_depends_on() -> None:
    assert QueueSettings(max_deliveries=9).plain
    assert not QueueSettings(delay="1 minute").plain


@pytest.mark.parametrize(
    "settings",
    [
        QueueSettings(ordered=True, priority="urgent", delay="at", time_to_live="wait"),
        QueueSettings(priority="header:urgent", delay="header:after", time_to_live="1 hour"),
    ],
)
def test_columns_headers_and_intervals_fit(settings: QueueSettings) -> None:
    check(settings, TOPIC)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (QueueSettings(priority="urgnt"), 'did you mean "urgent"'),
        (QueueSettings(priority="wait"), "whole numbers"),
        (QueueSettings(delay="k"), "TIMESTAMP"),
        (QueueSettings(time_to_live="header:"), "cannot be"),
    ],
)
def test_what_a_topic_does_not_have_is_refused(settings: QueueSettings, reason: str) -> None:
    with pytest.raises(UsageError) as error:
        check(settings, TOPIC)
    assert reason in str(error.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"max_deliveries": "3"},
        {"max_deliveries": 2.5},
        {"delay": timedelta(minutes=5)},
        {"time_to_live": 5},
        {"priority": 5},
        {"ordered": "yes"},
    ],
)
def test_settings_of_another_type_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(settings))):
        QueueSettings(**settings)


def test_order_needs_a_key() -> None:
    with pytest.raises(UsageError, match="no key"):
        check(QueueSettings(ordered=True), topics.create("emails", "k STRING"))


def test_an_interval_is_for_all_messages() -> None:
    assert (fixed("2 seconds"), fixed("header:x"), fixed(None)) == (timedelta(seconds=2), None, None)
