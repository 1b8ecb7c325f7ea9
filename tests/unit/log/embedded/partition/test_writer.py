"""The writing side of a partition when the system says no, or dies, at the worst moment."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest

from headwater import durations
from headwater.errors import Fenced, LogUnavailable
from headwater.log.embedded import EmbeddedLog
from headwater.log.embedded.partition import frame, received_time, segment


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with EmbeddedLog(tmp_path / "log", segment_bytes=300) as log:
        yield log


def numbers(log: EmbeddedLog) -> list[int]:
    return sorted(n for batch in log.read("t") for n in batch.column("n").to_pylist())


class Failing:
    """Lets a function of ``os`` fail once, when a condition holds."""

    def __init__(self, patch: pytest.MonkeyPatch, name: str, when: Any, code: int):
        self.real, self.when, self.code, self.left = getattr(os, name), when, code, 1
        patch.setattr(os, name, self)

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        if self.left and self.when(*arguments):
            self.left -= 1
            raise OSError(self.code, os.strerror(self.code))
        return self.real(*arguments, **more)


def test_a_segment_that_cannot_be_opened_harms_no_other_file(
    log: EmbeddedLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.create_topic("t", "n INT")
    producer = log.producer("t")
    producer._rouse = lambda event: None  # type: ignore[method-assign]  # only flush appends
    for n in range(2):
        producer.send_batch([{"n": n}])
        producer.flush()
    Failing(
        monkeypatch,
        "open",
        lambda path, flags, *_: str(path).endswith(".log") and flags & os.O_CREAT,
        errno.ENOSPC,
    )
    producer.send_batch([{"n": 2}])
    with pytest.raises(LogUnavailable):
        producer.flush()
    with open(tmp_path / "precious", "w+b") as precious:
        precious.write(b"precious")
        precious.flush()
        producer.close()
        assert (tmp_path / "precious").read_bytes() == b"precious"
    assert numbers(log) == [0, 1, 2]
    assert log.verify("t").ok


def test_a_failed_sync_is_told_and_the_records_are_written_again(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.create_topic("t", "n INT", partitions=2)
    producer = log.producer("t")
    producer._rouse = lambda event: None  # type: ignore[method-assign]  # only flush appends
    producer.send_batch([{"n": 0}])
    producer.flush()
    failing = Failing(monkeypatch, "fdatasync", lambda fd: True, errno.EIO)
    producer.send_batch([{"n": 1}, {"n": 2}])
    with pytest.raises(LogUnavailable, match="cannot append"):
        producer.flush()
    assert failing.left == 0
    assert numbers(log) == [0]
    producer.close()
    assert numbers(log) == [0, 1, 2]
    assert log.verify("t").ok


def test_an_index_that_cannot_be_written_costs_nothing(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(segment, "INDEX_EVERY", 1)
    monkeypatch.setattr(segment, "add_entry", full)
    log.create_topic("t", "n INT")
    with log.producer("t") as producer:
        for n in range(5):
            producer.send_batch([{"n": n}])
    assert numbers(log) == list(range(5))


def test_a_kill_while_a_segment_is_begun_forgets_no_producer(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path / "log")
    log.create_topic("t", "k STRING, n INT", key="k", cleanup="compact")

    def import_all() -> None:
        with log.producer("t", id="importer") as producer:
            for n in range(5):
                producer.send({"k": f"k{n}", "n": n}, sequence=n)

    import_all()
    log.compact("t")
    import_all()
    with log.producer("t") as producer:
        producer.send({"k": "z", "n": 9})
    code = """
    import os, sys
    from pathlib import Path
    from headwater.log.embedded import EmbeddedLog
    from headwater.log.embedded.partition import tail
    real = tail.Tail.save
    def save_and_die(self, *arguments):
        real(self, *arguments)
        os.kill(os.getpid(), 9)
    tail.Tail.save = save_and_die
    EmbeddedLog(Path(sys.argv[1])).compact("t")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code), str(log.root)], check=False)
    assert done.returncode == -9
    log = EmbeddedLog(tmp_path / "log")
    import_all()
    assert numbers(log) == [0, 1, 2, 3, 4, 9]
    assert log.verify("t").ok


@pytest.mark.parametrize("damage", [b"", b"garbage"])
def test_a_lost_snapshot_is_carried_on_from_the_one_before(log: EmbeddedLog, damage: bytes) -> None:
    log.create_topic("t", "n INT", retention_bytes=600)
    with log.producer("t", id="importer") as producer:
        for n in range(10):
            producer.send_batch([{"n": n}], sequence=n)
    log.close()
    newest = max((log.root / "topics/t/0").glob("*.producers"))
    newest.write_bytes(damage)
    with EmbeddedLog(log.root, segment_bytes=300) as again, again.producer("t", id="importer") as producer:
        assert producer.sequence == 10
        before = again.resolve("t", "latest")
        producer.send_batch([{"n": 9}], sequence=9)
        producer.flush()
        assert again.resolve("t", "latest") == before


def test_a_fenced_producer_stays_fenced_in_partitions_that_are_added(log: EmbeddedLog) -> None:
    log.create_topic("t", "k STRING, n INT", key="k")
    old, new = log.producer("t", id="x"), log.producer("t", id="x")
    log.alter_topic("t", partitions=4)
    batch = [{"k": f"k{n}", "n": n} for n in range(20)]
    old.send_batch(batch)
    with pytest.raises(Fenced):
        old.flush()
    new.send_batch([row | {"n": row["n"] + 100} for row in batch])  # type: ignore[operator]
    new.close()
    assert numbers(log) == list(range(100, 120))
    with pytest.raises(Fenced):
        old.close()


def test_a_producer_can_start_when_the_groups_file_is_lost(log: EmbeddedLog) -> None:
    log.create_topic("t", "n INT")
    for n in range(4):
        with log.producer("t", id="x") as producer:
            producer.send_batch([{"n": n}])
    log.close()
    for path in log.root.glob("state.db*"):
        path.unlink()
    with log.producer("t", id="x") as producer:
        producer.send_batch([{"n": 4}])
    assert numbers(log) == list(range(5))


def test_no_frame_is_much_larger_than_allowed(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path / "log")
    log.create_topic("t", "n INT, text STRING")
    large = [{"n": n, "text": os.urandom(450_000).hex()} for n in range(30)]
    with log.producer("t") as producer:
        producer.send_batch(large + [{"n": n} for n in range(30, 30_000)])
    path = next((log.root / "topics/t/0").glob("*.log"))
    with open(path, "rb") as file:
        sizes = [
            found.payload_size
            for _, found in segment.walk(file.fileno(), 0, path.stat().st_size)
            if isinstance(found, frame.Header)
        ]
    assert max(sizes) < 1.1 * frame.BYTES_MAX
    assert numbers(log) == list(range(30_000))


def test_sequences_far_apart_are_stored_as_they_are(log: EmbeddedLog) -> None:
    log.create_topic("t", "n INT", partitions=2)
    wanted = [0, 1, 300, 1 << 33, (1 << 33) + 1, 1 << 50]
    with log.producer("t", id="x") as producer:
        for n, sequence in enumerate(wanted):
            producer.send({"n": n}, sequence=sequence)
    found = pa.Table.from_batches(log.read("t", meta=True))
    assert sorted(found.column("_sequence").to_pylist()) == wanted
    assert np.all(np.diff(next(log.read("t", 0, meta=True)).column("_sequence").to_numpy()) > 0)


def test_an_anonymous_producer_is_forgotten_an_hour_after_its_last_record_and_a_named_one_is_not(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.create_topic("t", "n INT")
    for producer in (log.producer("t"), log.producer("t", id="named")):
        with producer:
            producer.send_batch([{"n": 0}])
    for later, known in ((3500, 2), (3700, 1)):
        monkeypatch.setattr(durations, "now", lambda by=later: time.time_ns() // 1000 + by * 1_000_000)
        monkeypatch.setattr(
            received_time, "files_clock", lambda _, by=later: time.time_ns() // 1000 + by * 1_000_000
        )
        with log.producer("t", id="late") as producer:
            for n in range(10):  # each segment has a snapshot of who is known
                producer.send_batch([{"n": n}])
                producer.flush()
        newest = max((log.root / "topics" / "t" / "0").glob("*.producers"))
        names = set(orjson.loads(newest.read_bytes()[8:])[5])
        assert len(names - {"late"}) == known
    assert "named" in names
