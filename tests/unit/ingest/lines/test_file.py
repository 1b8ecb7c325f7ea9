"""A file's lines into a topic, each once."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import headwater
from headwater import Log, ingest
from headwater.errors import HeadwaterError, SourceRefused
from headwater.ingest import BackgroundIngest, IngestSettings
from headwater.ingest.lines import file


@pytest.fixture
def log() -> Iterator[Log]:
    with headwater.open("memory:") as opened:
        opened.create_topic("t", "id BIGINT", partitions=2)
        yield opened


@pytest.fixture(autouse=True)
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "IDLE_SECONDS", 0.01)
    monkeypatch.setattr(file, "SETTLED_SECONDS", 0.05)


def ids(log: Log) -> list[int]:
    return sorted(value for batch in log.read("t") for value in batch.column("id").to_pylist())


def lines(*numbers: int) -> bytes:
    return b"".join(b'{"id": %d}\n' % number for number in numbers)


def compress(path: Path, suffix: str, compressed: Callable[[bytes], bytes]) -> None:
    """Compress a file as programs do that keep its times."""
    made = path.with_name(path.name + suffix)
    made.write_bytes(compressed(path.read_bytes()))
    os.utime(made, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    path.unlink()


def read_all(log: Log, path: Path) -> None:
    with ingest.open(f"file:{path}", "t", log=log) as opened:
        opened.run(threading.Event())


@contextmanager
def following(log: Log, path: Path) -> Iterator[Callable[[int], None]]:
    settings = IngestSettings(follow=True, on_error="dead_letter")
    with BackgroundIngest(ingest.open(f"file:{path}", "t", log=log, settings=settings)) as work:

        def await_lines(count: int) -> None:
            deadline = time.monotonic() + 120
            while work.status().counts.get("lines", 0) < count and not work.ended(0.005):
                assert time.monotonic() < deadline

        yield await_lines


def test_a_file_is_read_to_its_end_and_goes_on_there(log: Log, tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_bytes(lines(1, 2) + b'{"id": 3}')
    read_all(log, path)
    assert ids(log) == [1, 2, 3]
    with path.open("ab") as end:
        end.write(b"\n" + lines(4))
    read_all(log, path)
    read_all(log, path)
    assert ids(log) == [1, 2, 3, 4]


def test_lines_are_stored_once_though_what_was_noted_is_older_than_the_log(log: Log, tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_bytes(lines(*range(100)))
    opened = ingest.open(f"file:{path}", "t", log=log)
    note = opened.checkpoints.load()
    opened._settle = lambda writer: None  # type: ignore[attr-defined]  # as if it were killed before
    opened.run(threading.Event())
    opened.close()
    assert note is None
    read_all(log, path)
    assert ids(log) == list(range(100))


def test_lines_are_not_sent_again_to_other_partitions_than_before(log: Log, tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_bytes(lines(*range(100)))
    opened = ingest.open(f"file:{path}", "t", log=log)
    opened._settle = lambda writer: None  # type: ignore[attr-defined]  # as if it were killed before
    opened.run(threading.Event())
    opened.close()
    log.alter_topic("t", partitions=5)
    with pytest.raises(SourceRefused, match="may be stored twice") as refused:
        read_all(log, path)
    assert "2 partitions" in str(refused.value.detail)
    assert ids(log) == list(range(100))


def test_a_topic_that_got_partitions_is_written_on_where_all_lines_were_noted(
    log: Log, tmp_path: Path
) -> None:
    path = tmp_path / "app.log"
    path.write_bytes(lines(*range(10)))
    read_all(log, path)
    log.alter_topic("t", partitions=5)
    with path.open("ab") as end:
        end.write(lines(10, 11))
    read_all(log, path)
    read_all(log, path)
    assert ids(log) == list(range(12))


def test_a_file_is_followed_through_rotations_of_both_kinds(log: Log, tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_bytes(lines(1))
    with following(log, path) as await_lines:
        await_lines(1)
        with path.open("ab") as writer:
            path.rename(tmp_path / "app.log.1")
            path.write_bytes(lines(3))
            writer.write(lines(2))  # by one that has not noticed
        await_lines(3)
        with path.open("ab") as writer:
            writer.write(lines(4) + b"odd\n")
        await_lines(5)
        shutil.copy(path, tmp_path / "app.log.2")
        path.write_bytes(b"")
        await_lines(5)
        time.sleep(0.1)
        path.write_bytes(lines(5))
        await_lines(6)
    assert ids(log) == [1, 2, 3, 4, 5]
    assert ingest.status(log, "t").losses == {"dead": 1}


def test_rotations_while_nobody_follows_lose_nothing(log: Log, tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_bytes(lines(1))
    with following(log, path) as await_lines:
        await_lines(1)
    with path.open("ab") as writer:
        writer.write(lines(2))
    path.rename(tmp_path / "app.log.2")
    path.write_bytes(lines(3))
    path.rename(tmp_path / "app.log.1")
    path.write_bytes(lines(4))
    read_all(log, path)
    read_all(log, path)
    assert ids(log) == [1, 2, 3, 4]


def test_generations_that_were_compressed_while_nobody_followed_are_read(log: Log, tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_bytes(lines(1))
    with following(log, path) as await_lines:
        await_lines(1)
    with path.open("ab") as writer:
        writer.write(lines(2))
    path.rename(tmp_path / "app.log.3")
    path.write_bytes(lines(3))
    path.rename(tmp_path / "app.log.2")
    path.write_bytes(lines(4))
    path.rename(tmp_path / "app.log.1")
    compress(tmp_path / "app.log.3", ".gz", gzip.compress)
    compress(tmp_path / "app.log.2", ".bz2", bz2.compress)
    compress(tmp_path / "app.log.1", ".xz", lzma.compress)
    path.write_bytes(lines(5))
    read_all(log, path)
    path.rename(tmp_path / "app.log.0")
    path.write_bytes(lines(6))
    read_all(log, path)
    compress(tmp_path / "app.log.0", ".gz", gzip.compress)
    path.rename(tmp_path / "app.log.0")
    path.write_bytes(lines(7))
    read_all(log, path)
    assert ids(log) == [1, 2, 3, 4, 5, 6, 7]


def test_a_generation_that_cannot_be_read_is_refused_and_no_line_is_left_out(
    log: Log, tmp_path: Path
) -> None:
    path = tmp_path / "app.log"
    path.write_bytes(lines(1))
    read_all(log, path)
    path.rename(tmp_path / "app.log.2")
    (tmp_path / "app.log.1.gz").write_bytes(gzip.compress(lines(2) * 999)[:-20])
    path.write_bytes(lines(3))
    with pytest.raises(SourceRefused, match="cannot be read"):
        read_all(log, path)


def test_a_file_that_is_emptied_without_a_copy_is_counted(log: Log, tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_bytes(lines(1, 2))
    with following(log, path) as await_lines:
        await_lines(2)
        path.write_bytes(lines(3))
        await_lines(3)
    assert ids(log) == [1, 2, 3]
    assert ingest.status(log, "t").losses == {"truncations": 1}


def test_a_file_that_is_not_there_is_waited_for_by_who_follows_and_by_nobody_else(
    log: Log, tmp_path: Path
) -> None:
    path = tmp_path / "app.log"
    with pytest.raises(SourceRefused, match="there is no file"):
        read_all(log, path)
    with following(log, path) as await_lines:
        path.write_bytes(lines(1))
        await_lines(1)
    assert ids(log) == [1]


def test_a_line_that_does_not_fit_ends_it_and_is_met_again(log: Log, tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_bytes(lines(1) + b"odd\n")
    for _ in range(2):
        with pytest.raises(HeadwaterError, match="does not fit topic"):
            read_all(log, path)
    path.write_bytes(lines(1, 2))
    read_all(log, path)
    assert ids(log) == [1, 2]


def test_another_file_under_the_same_name_is_refused(log: Log, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(lines(1))
    read_all(log, tmp_path / "one")
    with pytest.raises(SourceRefused, match="another --name"):
        read_all(log, tmp_path / "two")
