"""When somebody should look at a queue."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headwater.errors import UsageError
from headwater.log import QueueStatus
from headwater.queue import QueueAlert

STATUS = QueueStatus("t", "g", 5, 1, 0, 0, timedelta(minutes=3), 0, 0, 1)


def test_depth_and_age_are_told_in_words() -> None:
    assert QueueAlert().reasons(STATUS) == []
    assert QueueAlert(depth=6, age="3 minutes").reasons(STATUS) == []
    [deep, old] = QueueAlert(depth=5, age="1 minute").reasons(STATUS)
    assert deep == "6 messages wait, more than 5"
    assert old == "the oldest has waited 3 minutes, more than 1 minute"


def test_what_is_not_told_is_no_alert() -> None:
    unknown = QueueStatus("t", "g", None, None, None, None, None, 0, None, None)
    assert QueueAlert(depth=0, age="1 second").reasons(unknown) == []


def test_what_cannot_be_meant_is_refused() -> None:
    with pytest.raises(UsageError):
        QueueAlert(depth=-1)
    with pytest.raises(UsageError):
        QueueAlert(age="a while")
