"""Many processes, an index that is damaged, old or missing, and a sync that fails."""

from __future__ import annotations

import errno
import multiprocessing
import os
import sqlite3
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from headwater.errors import Conflict, LogUnavailable, TopicError
from headwater.log.conditional import ConditionalProducer
from headwater.log.embedded import EmbeddedLog
from headwater.log.embedded.conditional_appender import INDEX
from headwater.log.expected_version import Condition
from headwater.log.tag_index import FLUSH_POSTINGS


def opened(root: Path, **options: object) -> EmbeddedLog:
    log = EmbeddedLog(root, **options)  # type: ignore[arg-type]
    log.create_topic("t", "id STRING NOT NULL, n BIGINT", key="id", partitions=2)
    return log


def numbers(producer: ConditionalProducer, key: str) -> list[int]:
    return [row["n"] for batch in producer.read(key=key) for row in batch.to_pylist()]


def index_of(root: Path) -> Path:
    return root / "topics" / "t" / INDEX


def count_up(root: Path, times: int) -> None:
    with opened(root) as log, log.conditional_producer("t") as producer:
        for _ in range(times):
            while True:
                version = producer.version("counter")
                after = len(numbers(producer, "counter"))
                try:
                    row = {"id": "counter", "n": after}
                    producer.append([row], conditions=[Condition("counter", after=version)])
                    break
                except Conflict:
                    continue


@pytest.mark.slow
def test_processes_that_count_up_never_lose_a_step(tmp_path: Path) -> None:
    opened(tmp_path / "log").close()
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=count_up, args=(tmp_path / "log", 20)) for _ in range(3)]
    for each in workers:
        each.start()
    for each in workers:
        each.join(120)
    assert [each.exitcode for each in workers] == [0, 0, 0]
    with opened(tmp_path / "log") as log, log.conditional_producer("t") as producer:
        found = numbers(producer, "counter")
        # What was read may be newer than the version, but never older: each number is there once.
        assert len(found) == 60
        assert Counter(found).most_common(1)[0][1] == 1


@pytest.mark.parametrize("damage", ["missing", "garbage", "torn", "kept"])
def test_an_index_is_made_anew_where_it_cannot_be_used(tmp_path: Path, damage: str) -> None:
    with opened(tmp_path / "log", segment_bytes=5000) as log, log.conditional_producer("t") as producer:
        for n in range(200):
            producer.append([{"id": f"k{n % 7}", "n": n}], tags=[f"request:{n}"])
    path = index_of(tmp_path / "log")
    if damage == "missing":
        path.unlink()
    elif damage == "garbage":
        path.write_bytes(os.urandom(20_000))
    elif damage == "torn":
        path.write_bytes(path.read_bytes()[:5000])
    with opened(tmp_path / "log", segment_bytes=5000) as log, log.conditional_producer("t") as producer:
        for _ in range(2):  # SQLite may notice torn pages only when it needs them
            try:
                assert numbers(producer, "k3") == list(range(3, 200, 7))
                break
            except LogUnavailable:
                continue
        else:
            pytest.fail("the index was not made anew")
        with pytest.raises(Conflict):
            producer.append([{"id": "k3"}], conditions=[Condition("k3", tags=["request:3"])])


def test_an_index_of_another_log_is_not_believed(tmp_path: Path) -> None:
    for name, count in (("one", 30), ("two", 3)):
        with opened(tmp_path / name) as log, log.conditional_producer("t") as producer:
            for n in range(count):
                producer.append([{"id": name, "n": n}])
    index_of(tmp_path / "two").write_bytes(index_of(tmp_path / "one").read_bytes())
    with opened(tmp_path / "two") as log, log.conditional_producer("t") as producer:
        assert producer.version("one") == 0
        assert numbers(producer, "two") == [0, 1, 2]


def test_an_index_that_was_stored_goes_on_where_it_was(tmp_path: Path) -> None:
    with opened(tmp_path / "log", durability="os") as log, log.conditional_producer("t") as producer:
        for n in range(FLUSH_POSTINGS // 2 + 100):  # a key and a tag each
            producer.append([{"id": "a", "n": n}], tags=["x"])
        stored = sqlite3.connect(index_of(tmp_path / "log")).execute("SELECT count(*) FROM postings")
        assert stored.fetchone()[0] >= FLUSH_POSTINGS
        assert len(numbers(producer, "a")) == FLUSH_POSTINGS // 2 + 100
    with opened(tmp_path / "log", durability="os") as log, log.conditional_producer("t") as producer:
        assert producer.version("a") == FLUSH_POSTINGS // 2 + 100


def test_what_plain_producers_append_counts_too(tmp_path: Path) -> None:
    with opened(tmp_path / "log") as log, log.conditional_producer("t") as producer:
        version = producer.version("a")
        with log.producer("t") as plain:
            plain.send_batch([{"id": "a", "n": n} for n in range(5)])
        with pytest.raises(Conflict):
            producer.append([{"id": "a"}], conditions=[Condition("a", after=version)])
        assert numbers(producer, "a") == [0, 1, 2, 3, 4]


def test_a_failed_sync_takes_back_what_was_written_and_what_was_indexed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path / "log") as log, log.conditional_producer("t") as producer:
        producer.append([{"id": "a", "n": 1}], conditions=[Condition("a")])
        version = producer.version("a")

        def failing(fd: int) -> None:
            raise OSError(errno.EIO, "input/output error")

        with monkeypatch.context() as patch:
            patch.setattr(os, "fdatasync", failing)
            with pytest.raises(LogUnavailable):
                producer.append([{"id": "a", "n": 2}], conditions=[Condition("a", after=version)])
        assert producer.version("a") == version
        producer.append([{"id": "a", "n": 3}], conditions=[Condition("a", after=version)])
        assert numbers(producer, "a") == [1, 3]


def test_a_version_is_only_of_what_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one process syncs, another that is refused for its record makes it durable first."""
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(stack.enter_context(opened(tmp_path / "log")).conditional_producer("t"))
            for _ in range(2)
        )
        seen, sync = list[object](), os.fdatasync

        def meanwhile(fd: int) -> None:
            if not seen:
                seen.append(second.version("a"))
                with pytest.raises(Conflict):
                    second.append([{"id": "a", "n": 2}], conditions=[Condition("a")])
                seen.append(second.version("a"))
            sync(fd)

        monkeypatch.setattr(os, "fdatasync", meanwhile)
        made = first.append([{"id": "a", "n": 1}])
        assert seen == [0, made.offsets[-1] + 1]


def test_a_topic_that_has_got_partitions_is_refused_though_its_index_is_gone(tmp_path: Path) -> None:
    with opened(tmp_path / "log") as log:
        with log.conditional_producer("t") as producer:
            for n in range(20):
                producer.append([{"id": f"k{n}", "n": n}])
        log.alter_topic("t", partitions=3)
        index_of(tmp_path / "log").unlink()
        with pytest.raises(TopicError, match="partitions"), log.conditional_producer("t") as producer:
            producer.version("k1"), producer.version("k2"), producer.version("k3")


@pytest.mark.slow
def test_large_appends_are_several_frames_and_one_whole(tmp_path: Path) -> None:
    with opened(tmp_path / "log") as log, log.conditional_producer("t") as producer:
        producer.append([{"id": "a", "n": n} for n in range(70_000)])
        producer.append([{"id": "a", "n": 70_000}])
        assert numbers(producer, "a") == list(range(70_001))
