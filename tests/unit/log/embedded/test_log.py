"""The embedded log as a whole: a directory that several logs may open, its options, and what it follows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.errors import TopicReplaced, UnknownTopic, UsageError
from headwater.log.embedded import EmbeddedLog


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with EmbeddedLog(tmp_path / "log", durability="os") as log:
        log.create_topic("t", "n INT", partitions=2)
        send(log, range(4))
        yield log


def send(log: EmbeddedLog, numbers: range) -> None:
    with log.producer("t") as producer:
        producer.send_batch([{"n": n} for n in numbers], sequence=numbers[0])


def rows(batches: Iterator[Any]) -> list[int]:
    return [n for batch in batches for n in batch.column("n").to_pylist()]


@pytest.mark.parametrize("option", ["durability", "compression"])
def test_an_option_of_another_word_is_refused_with_the_words_there_are(tmp_path: Path, option: str) -> None:
    with pytest.raises(UsageError, match=f'^{option} is ".*" or ".*", not "most"'):
        EmbeddedLog(tmp_path / "log", **{option: "most"})  # type: ignore[arg-type]
    assert not (tmp_path / "log").exists()


@pytest.mark.parametrize("compression", ["lz4", "zstd", "none"])
def test_logs_of_one_directory_read_each_other_whatever_their_compression(
    log: EmbeddedLog, compression: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(log.root.parent)
    with EmbeddedLog(Path("log"), compression=compression) as other:
        monkeypatch.chdir("/")
        assert other.url == log.url == f"file:{log.root}"
        send(other, range(4, 6))
        assert sorted(rows(log.read("t"))) == sorted(rows(other.read("t"))) == list(range(6))


def test_reading_goes_partition_by_partition_and_ends_where_it_began(log: EmbeddedLog) -> None:
    reading = log.read("t")
    send(log, range(4, 6))
    assert rows(reading) == [0, 2, 1, 3]


def test_following_yields_what_arrives_also_in_partitions_that_are_added(log: EmbeddedLog) -> None:
    following = log.read("t", follow=True)
    seen = rows(next(following) for _ in range(2))
    log.alter_topic("t", partitions=3)
    send(log, range(4, 7))
    seen += rows(next(following) for _ in range(3))
    assert sorted(seen) == list(range(7))


def test_a_deleted_topic_has_no_lag_and_one_made_again_is_another(log: EmbeddedLog) -> None:
    log.seek("g", "t", "latest")
    before = log.resolve("t", "latest")
    log.delete_topic("t")
    assert log.lag("g") == []
    with pytest.raises(UnknownTopic):
        log.read("t")
    log.create_topic("t", "n INT")
    with pytest.raises(TopicReplaced):
        log.read("t", start=before)
    assert rows(log.read("t")) == []


def test_verification_counts_every_topic_and_goes_on_behind_one_that_cannot_be_read(log: EmbeddedLog) -> None:
    log.create_topic("u", "n INT")
    assert (log.verify().ok, log.verify().records) == (True, 4)
    (log.root / "topics/a").mkdir()
    (log.root / "topics/a/topic.json").write_bytes(b"{")
    found = log.verify()
    assert [each.topic for each in found.findings] == ["a"]
    assert found.records == 4


def test_describe_adds_up_its_partitions(log: EmbeddedLog) -> None:
    info = log.describe("t")
    assert [(each.partition, each.earliest, each.end) for each in info.partitions] == [(0, 0, 2), (1, 0, 2)]
    files = (log.root / "topics/t").glob("*/*.log")
    assert info.size == sum(each.stat().st_size for each in files) > 0
