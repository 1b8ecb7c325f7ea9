"""The archive's files: whose they are, and what is said when they are damaged."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater import durable
from headwater.errors import DamagedLog
from headwater.log.embedded import EmbeddedLog


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with EmbeddedLog(tmp_path / "log", segment_bytes=2000) as log:
        yield log


def archive(log: EmbeddedLog, place: str, word: str = "w", batches: int = 20) -> list[Path]:
    """Make a topic whose records are nearly all archived, and return the archive's files."""
    log.create_topic("t", "n BIGINT, word STRING", retention_bytes=1, archive=place)
    with log.producer("t") as producer:
        for start in range(0, batches * 10, 10):
            producer.send_batch([{"n": n, "word": word} for n in range(start, start + 10)])
    log.compact("t")
    return sorted((log.root / place).glob("t@*/0/*.parquet"))


def column(log: EmbeddedLog, name: str, **how: Any) -> list[Any]:
    return [value for batch in log.read("t", **how) for value in batch.column(name).to_pylist()]


@pytest.mark.parametrize("place", [".", "topics", "mine"])
def test_deleting_a_topic_removes_its_own_archive_and_nothing_else(log: EmbeddedLog, place: str) -> None:
    precious = log.root / place / "t" / "0" / "precious.txt"
    if place != "topics":
        precious.parent.mkdir(parents=True)
        precious.write_text("keep me")
    log.create_topic("other", "n BIGINT")
    files = archive(log, place)
    assert files
    log.delete_topic("t")
    assert not any(path.exists() for path in files)
    assert place == "topics" or precious.read_text() == "keep me"
    assert log.topic("other").name == "other"


def test_two_logs_that_share_an_archive_read_their_own_records(tmp_path: Path) -> None:
    shared = str(tmp_path / "shared")
    logs = [EmbeddedLog(tmp_path / name, segment_bytes=2000) for name in ("one", "two")]
    for log in logs:
        archive(log, shared, word=log.root.name)
    for log in logs:
        assert column(log, "word") == [log.root.name] * 200
    logs[0].delete_topic("t")
    assert column(logs[1], "n") == list(range(200))


def test_a_topic_made_anew_does_not_meet_the_archive_of_the_old_one(log: EmbeddedLog) -> None:
    archive(log, "old", word="before")
    log.alter_topic("t", archive="elsewhere")
    log.delete_topic("t")
    archive(log, "old", word="after")
    assert set(column(log, "word")) == {"after"}


def test_a_damaged_header_of_a_page_hides_no_record(log: EmbeddedLog) -> None:
    """Parquet's own checksums leave out these headers: one changed bit makes a page one of a kind to skip."""
    path = archive(log, "old")[1]
    whole = path.read_bytes()
    for position in range(4, 64):  # the header of the first page, and a part of its data
        for bit in range(8):
            data = bytearray(whole)
            data[position] ^= 1 << bit
            path.write_bytes(data)
            with pytest.raises(DamagedLog):
                column(log, "n")


@pytest.mark.slow
def test_a_damaged_archived_file_is_reported_with_its_offsets_and_never_read_wrongly(
    log: EmbeddedLog,
) -> None:
    path = archive(log, "old")[1]
    end = int(path.stem.split("-")[1])
    whole, expected, times = path.read_bytes(), column(log, "n"), column(log, "_received", meta=True)
    rng, reported = random.Random(1), 0
    for _ in range(200):
        data = bytearray(whole)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        try:
            assert column(log, "n") == expected
            assert column(log, "_received", meta=True) == times
            assert column(log, "n", start=times[0]) == expected
        except DamagedLog as error:
            reported += 1
            assert str(path) in error.message
            assert f" to {end - 1} cannot be read" in str(error)
            assert error.resume == end
    assert reported > 50
    path.write_bytes(bytes(len(whole)))
    with pytest.raises(DamagedLog):
        column(log, "n")
    assert column(log, "n", start=end) == expected[end:]


def test_a_reader_that_met_damage_meets_it_again(log: EmbeddedLog) -> None:
    path = archive(log, "old")[0]
    path.write_bytes(b"not Parquet at all")
    with log.consumer("t", "g") as consumer:
        for _ in range(2):
            with pytest.raises(DamagedLog):
                consumer.poll(0.1)


def test_verify_reads_the_archive_too(log: EmbeddedLog) -> None:
    path = archive(log, "old")[1]
    assert log.verify("t").ok
    assert log.verify("t").records == 200
    data = bytearray(path.read_bytes())
    data[len(data) // 3 : len(data) // 2] = bytes(len(data) // 2 - len(data) // 3)
    path.write_bytes(data)
    findings = log.verify("t").findings
    assert len(findings) == 1
    assert str(path) in findings[0].problem


def test_a_gap_in_the_segments_that_the_archive_covers_is_read_from_there(log: EmbeddedLog) -> None:
    """A power loss has taken back the first unlink, but not the second."""
    log.create_topic("t", "n BIGINT, word STRING")
    with log.producer("t") as producer:
        for start in range(0, 200, 10):
            producer.send_batch([{"n": n, "word": "w"} for n in range(start, start + 10)])
    first = min((log.root / "topics/t/0").glob("*.log"))
    back = first.read_bytes()
    log.alter_topic("t", retention_bytes=1, archive="old")
    log.compact("t")
    first.write_bytes(back)
    assert column(log, "n") == list(range(200))
    assert column(log, "n", start=95) == list(range(95, 200))
    assert log.verify("t").ok


def test_a_nested_field_may_be_called_received(log: EmbeddedLog) -> None:
    log.create_topic("t", "s STRUCT<_received: STRING>, n BIGINT", retention_bytes=1, archive="old")
    with log.producer("t") as producer:
        for n in range(30):
            producer.send_batch([{"s": {"_received": "x" * 50}, "n": n}])
    log.compact("t")
    times = column(log, "_received", meta=True)
    assert log.describe("t").partitions[0].oldest == times[0]
    assert column(log, "n", start=times[5])[0] <= 5


def test_files_of_other_names_in_the_directories_are_left_alone(log: EmbeddedLog) -> None:
    files = archive(log, "old")
    (files[0].parent / "notes.parquet").write_bytes(b"mine")
    (log.root / "topics/t/0/debug.log").write_bytes(b"mine")
    assert column(log, "n") == list(range(200))
    assert log.verify("t").ok
    log.compact("t")
    assert (log.root / "topics/t/0/debug.log").read_bytes() == b"mine"


def test_each_directory_that_is_made_is_made_durable(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(durable, "sync", synced.append)
    place = archive(log, "far/away")[0].parent
    first = synced.index(log.root / "far") - 1
    assert synced[first : first + 4] == [log.root, log.root / "far", log.root / "far/away", place.parent]
    assert place in synced[first + 4 :]
