from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.errors import DamagedLog, OffsetLost, UnknownTopic
from headwater.log.embedded import EmbeddedLog, retention
from headwater.log.embedded.partition import frame


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with EmbeddedLog(tmp_path / "log", segment_bytes=2000) as log:
        yield log


def fill(log: EmbeddedLog, batches: int = 20, first: int = 0) -> None:
    with log.producer("t") as producer:
        for start in range(first, first + batches):
            producer.send_batch([{"n": n} for n in range(start * 10, start * 10 + 10)])


def numbers(log: EmbeddedLog, **how: Any) -> list[int]:
    return [n for batch in log.read("t", **how) for n in batch.column("n").to_pylist()]


def test_retention_by_size_deletes_whole_segments_oldest_first(log: EmbeddedLog) -> None:
    log.create_topic("t", "n BIGINT", retention_bytes=5000)
    fill(log, 40)
    log.compact("t")
    info = log.describe("t").partitions[0]
    assert info.earliest > 0
    assert info.size <= 5000 + 2500
    assert numbers(log) == list(range(info.earliest, 400))


def test_retention_by_time_deletes_what_is_old_and_keeps_what_is_new(log: EmbeddedLog) -> None:
    log.create_topic("t", "n BIGINT", retention="300 milliseconds")
    fill(log, 20)
    time.sleep(0.4)
    fill(log, 2, first=20)
    log.compact("t")
    left = numbers(log)
    assert left == list(range(left[0], 220))
    assert left[0] > 0
    time.sleep(0.4)
    log.compact("t")
    assert numbers(log) == []
    assert log.resolve("t", "earliest").offsets == {0: 220}
    fill(log, 1, first=22)
    assert numbers(log) == list(range(220, 230))


def test_retention_is_applied_while_producing(log: EmbeddedLog) -> None:
    log.create_topic("t", "n BIGINT", retention_bytes=5000)
    fill(log, 200)
    log.close()
    assert log.describe("t").size < 20_000


def test_a_consumer_that_fell_out_of_retention_is_told_how_much_it_missed(log: EmbeddedLog) -> None:
    log.create_topic("t", "n BIGINT", retention_bytes=5000)
    fill(log, 1)
    with log.consumer("t", "slow") as slow, log.consumer("t", "quick") as quick:
        assert slow.poll(1) is not None
        slow.commit()
        with EmbeddedLog(log.root, segment_bytes=2000) as writer:  # closing waits for its retention
            fill(writer, 60, first=1)
        while quick.poll(0.1) is not None:
            quick.commit()
        slow.close()
        log.compact("t")
        earliest = log.describe("t").partitions[0].earliest
        with log.consumer("t", "slow") as again, pytest.raises(OffsetLost) as caught:
            again.poll(1)
        assert (caught.value.missed, caught.value.earliest) == (earliest - 10, earliest)
        assert "headwater seek" in str(caught.value)
        fill(log, 1, first=61)
        batch = quick.poll(1)
        assert batch is not None  # no other consumer notices
    log.compact("t")
    earliest = log.seek("slow", "t", "earliest").offsets[0]
    with log.consumer("t", "slow") as again:
        batch = again.poll(1)
        assert batch is not None
        assert batch.column("n")[0].as_py() == earliest


def test_an_archive_keeps_everything_readable(log: EmbeddedLog) -> None:
    log.create_topic("t", "n BIGINT", retention_bytes=5000, archive="old")
    fill(log, 20)
    middle = datetime.now().astimezone()
    fill(log, 20, first=20)
    with_meta = [row for b in log.read("t", meta=True) for row in b.to_pylist()]
    log.compact("t")
    files = list((log.root / "old").glob("t@*/0/*.parquet"))
    assert files
    assert min(int(p.stem) for p in (log.root / "topics/t/0").glob("*.log")) > 100
    assert numbers(log) == list(range(400))
    assert [row for b in log.read("t", meta=True) for row in b.to_pylist()] == with_meta
    assert numbers(log, start=95, end=105) == list(range(95, 105))
    assert numbers(log, start=middle) == list(range(200, 400))
    assert log.describe("t").partitions[0].earliest == 0


def test_a_consumer_reads_on_from_the_archive_into_the_log(log: EmbeddedLog) -> None:
    log.create_topic("t", "n BIGINT", retention_bytes=5000, archive="old")
    fill(log, 40)
    log.compact("t")
    seen: list[int] = []
    with log.consumer("t", "g") as consumer:
        while (batch := consumer.poll(0.1)) is not None:
            seen += batch.column("n").to_pylist()
            consumer.commit()
    assert seen == list(range(400))
    assert log.lag("g")[0].records == 0


def test_old_records_in_the_archive_have_nulls_in_a_new_column(log: EmbeddedLog) -> None:
    log.create_topic("t", "n BIGINT", retention_bytes=5000, archive="old")
    fill(log, 40)
    log.compact("t")
    log.alter_topic("t", schema="n BIGINT, note STRING")
    assert next(log.read("t")).to_pylist()[0] == {"n": 0, "note": None}


def test_a_living_producer_applies_the_retention_of_now_not_of_when_it_began(log: EmbeddedLog) -> None:
    log.create_topic("t", "n BIGINT", retention_bytes=3000)
    with log.producer("t") as producer:
        producer.send_batch([{"n": 0}])
        log.alter_topic("t", retention_bytes=None, retention="30 days")
        for start in range(1, 400, 10):
            producer.send_batch([{"n": n} for n in range(start, start + 10)])
            producer.flush()
    log.close()
    assert numbers(log)[-400:] == list(range(1, 401))


@pytest.mark.slow
def test_a_retention_set_later_is_applied_by_a_producer_that_began_without(log: EmbeddedLog) -> None:
    log.create_topic("t", "n BIGINT")
    with log.producer("t") as producer:
        producer.send_batch([{"n": 0}])
        log.alter_topic("t", retention_bytes=5000)
        for n in range(400):
            producer.send_batch([{"n": n}] * 10)
            producer.flush()
    log.close()
    assert log.describe("t").partitions[0].earliest > 0


def test_cleanup_of_a_topic_that_is_deleted_meanwhile_ends_quietly(
    log: EmbeddedLog, caplog: pytest.LogCaptureFixture
) -> None:
    log.create_topic("t", "n BIGINT", retention_bytes=1)
    fill(log, 20)
    stored = log._storage.catalog.get("t")
    log.delete_topic("t")
    log._maintenance.begin(stored)
    log._maintenance._in_background(stored)
    assert not caplog.records
    with pytest.raises(UnknownTopic):
        log._maintenance.now(stored)


def damage_end(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-1000] + bytes(1000))  # with the headers of the last frames


def test_a_segment_whose_newest_time_is_unreadable_is_as_young_as_what_follows(log: EmbeddedLog) -> None:
    log.create_topic("t", "n BIGINT", retention="1 hour")
    fill(log, 20)
    segments = sorted((log.root / "topics/t/0").glob("*.log"))
    for path in segments[:-1]:
        path.write_bytes(bytes(len(path.read_bytes())))  # no time in it can be read
    log.compact("t")
    assert sorted((log.root / "topics/t/0").glob("*.log")) == segments


def test_a_segment_with_a_damaged_end_goes_when_the_next_one_is_too_old(log: EmbeddedLog) -> None:
    log.create_topic("t", "n BIGINT", retention="300 milliseconds")
    with EmbeddedLog(log.root, segment_bytes=2000) as writer:
        fill(writer, 20)
    segments = sorted((log.root / "topics/t/0").glob("*.log"))
    damage_end(segments[0])
    time.sleep(0.4)
    fill(log, 2, first=20)
    log.compact("t")
    assert not segments[0].exists()


def test_a_closed_segment_that_lost_its_last_frames_is_not_taken_for_older(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path / "log", segment_bytes=2000)
    log.create_topic("t", "n BIGINT")
    fill(log, 1)
    time.sleep(0.4)
    fill(log, 20, first=1)
    first, *_ = segments = sorted((log.root / "topics/t/0").glob("*.log"))
    header = frame.unpack(first.read_bytes())
    assert header is not None
    first.write_bytes(first.read_bytes()[: header.size()])  # only the old frame is left
    log.alter_topic("t", retention="300 milliseconds")
    log.compact("t")
    assert sorted((log.root / "topics/t/0").glob("*.log"))[: len(segments)] == segments


def test_every_removal_is_made_durable_before_the_next(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[int] = []

    def note(directory: Path) -> None:
        left.append(len(list(directory.glob("*.log"))))

    monkeypatch.setattr(retention, "durable", SimpleNamespace(sync=note))
    log.create_topic("t", "n BIGINT")
    fill(log, 40)
    before = len(list((log.root / "topics/t/0").glob("*.log")))
    log.alter_topic("t", retention_bytes=1)
    log.compact("t")
    assert left == list(range(before - 1, before - 1 - len(left), -1))
    assert len(left) > 3
    left.clear()
    with EmbeddedLog(log.root.parent / "quick", segment_bytes=2000, durability="os") as quick:
        quick.create_topic("t", "n BIGINT", retention_bytes=1)
        fill(quick, 40)
        quick.compact("t")
    assert left == []


@pytest.mark.slow
def test_questions_about_a_log_are_answered_while_its_segments_go(log: EmbeddedLog) -> None:
    log.create_topic("t", "n BIGINT", retention_bytes=3000)
    stop = threading.Event()
    failed: list[BaseException] = []

    def work() -> None:
        with EmbeddedLog(log.root, segment_bytes=500) as other:
            while not stop.is_set():
                fill(other, 10)
                other.compact("t")

    thread = threading.Thread(target=work)
    thread.start()
    try:
        until = time.monotonic() + 3
        while time.monotonic() < until:
            log.describe("t")
            log.resolve("t", datetime.now().astimezone())
            assert log.verify("t").ok
    except BaseException as error:
        failed.append(error)
    finally:
        stop.set()
        thread.join()
    assert failed == []


def test_a_segment_that_vanishes_for_ever_is_told_as_damage_and_a_topic_as_unknown(
    log: EmbeddedLog,
) -> None:
    log.create_topic("t", "n BIGINT")
    stored = log._storage.catalog.get("t")

    def look() -> None:
        raise FileNotFoundError("00000000000000000000.log")

    with pytest.raises(DamagedLog, match="is missing"):
        log._storage.with_retry(stored, look)
    log.delete_topic("t")
    with pytest.raises(UnknownTopic):
        log._storage.with_retry(stored, look)
