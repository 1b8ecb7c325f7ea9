"""A small log, for what every log does alike."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import headwater
from headwater.log.interface import Log


@pytest.fixture
def log() -> Iterator[Log]:
    """A log with ten numbers in two partitions of the topic ``t``."""
    with headwater.open("memory:") as log:
        log.create_topic("t", "n INT", partitions=2)
        with log.producer("t") as producer:
            producer.send_batch([{"n": n} for n in range(10)])
        yield log
