"""Care of a log: by one at a time, beside the appenders, which no failure of it stops."""

from __future__ import annotations

import fcntl
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.errors import HeadwaterError
from headwater.log.embedded import EmbeddedLog
from headwater.log.embedded.maintenance import Maintenance


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    """A log whose topic may keep less than it has: the retention is set when all is there."""
    with EmbeddedLog(tmp_path / "log", durability="os", segment_bytes=300) as log:
        log.create_topic("t", "n INT", partitions=2)
        for n in range(10):
            send(log, n)
        yield log


def send(log: EmbeddedLog, n: int) -> None:
    with log.producer("t") as producer:
        producer.send_batch([{"n": n}], sequence=n)


def earliest(log: EmbeddedLog) -> list[int]:
    return list(log.resolve("t", "earliest").offsets.values())


def cared(log: EmbeddedLog) -> None:
    """Begin a topic's cleanup in the background, and wait for its end."""
    maintenance = Maintenance(log._storage)
    maintenance.begin(log._storage.catalog.get("t"))
    maintenance.wait()


def test_a_topic_without_any_cleanup_keeps_all_and_begins_no_thread(log: EmbeddedLog) -> None:
    maintenance = Maintenance(log._storage)
    maintenance.begin(log._storage.catalog.get("t"))
    assert maintenance._running == set()
    maintenance.now(log._storage.catalog.get("t"))
    assert earliest(log) == [0, 0]


def test_cleanup_is_that_of_the_declaration_of_now(log: EmbeddedLog) -> None:
    before = log._storage.catalog.get("t")
    log.alter_topic("t", retention_bytes=1)
    maintenance = Maintenance(log._storage)
    maintenance.begin(before)
    maintenance.wait()
    assert min(earliest(log)) > 0
    assert maintenance._running == set()


def test_a_partition_that_another_cares_for_is_left_to_it(log: EmbeddedLog) -> None:
    log.alter_topic("t", retention_bytes=1)
    with open(log.root / "topics/t/0/maintenance.lock", "w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        cared(log)
        first, second = earliest(log)
        assert first == 0
        assert second > 0
    cared(log)
    assert earliest(log)[0] > 0


def test_a_failure_of_care_is_told_and_stops_no_append(
    log: EmbeddedLog, caplog: pytest.LogCaptureFixture
) -> None:
    log.alter_topic("t", retention_bytes=1)
    (log.root / "topics/t/0/maintenance.lock").mkdir()
    with caplog.at_level(logging.WARNING, "headwater"):
        cared(log)
    assert 'cleanup of topic "t" failed' in caplog.text
    send(log, 10)
    assert log.resolve("t", "latest").offsets == {0: 6, 1: 5}
    with pytest.raises(HeadwaterError):  # who asks for it is told
        log.compact("t")


def test_a_topic_that_was_deleted_needs_no_care(log: EmbeddedLog, caplog: pytest.LogCaptureFixture) -> None:
    log.alter_topic("t", retention_bytes=1)
    stored, maintenance = log._storage.catalog.get("t"), Maintenance(log._storage)
    log.delete_topic("t")
    with caplog.at_level(logging.WARNING, "headwater"):
        maintenance.begin(stored)
        maintenance._in_background(stored)
    assert caplog.text == ""
