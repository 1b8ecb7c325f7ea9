"""What is reported when stored bytes are not what they were."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.errors import DamagedLog
from headwater.log.embedded import EmbeddedLog


@pytest.fixture
def log(tmp_path: Path) -> EmbeddedLog:
    log = EmbeddedLog(tmp_path / "log")
    log.create_topic("t", "n BIGINT")
    with log.producer("t", id="p") as producer:
        for start in range(0, 100, 10):
            producer.send_batch([{"n": n} for n in range(start, start + 10)])
    return log


def active(log: EmbeddedLog) -> Path:
    return max((log.root / "topics/t/0").glob("*.log"))


def change(path: Path, edit: Callable[[bytearray], object]) -> None:
    data = bytearray(path.read_bytes())
    edit(data)
    path.write_bytes(data)


def read(log: EmbeddedLog, start: int | str = "earliest") -> tuple[list[int], DamagedLog | None]:
    seen: list[int] = []
    try:
        for batch in log.read("t", start=start):  # type: ignore[arg-type]
            seen += batch.column("n").to_pylist()
    except DamagedLog as error:
        return seen, error
    return seen, None


@pytest.mark.parametrize("place", [0.05, 0.3, 0.5, 0.77, 0.9])
def test_a_damaged_middle_is_reported_and_the_rest_can_be_read(log: EmbeddedLog, place: float) -> None:
    path = active(log)
    at = int(len(path.read_bytes()) * place)
    change(path, lambda data: data.__setitem__(slice(at, at + 3), bytes(b ^ 0xFF for b in data[at : at + 3])))
    fresh = EmbeddedLog(log.root)
    before, error = read(fresh)
    assert before == list(range(len(before)))
    assert error is not None
    assert str(path) in error.message
    assert f"{10} records, offsets {len(before)} to {len(before) + 9}, cannot be read" == error.detail
    assert error.resume == len(before) + 10
    after, error = read(fresh, error.resume)
    assert error is None
    assert before + list(range(len(before), len(before) + 10)) + after == list(range(100))
    findings = fresh.verify("t").findings
    assert len(findings) == 1
    assert str(path) in findings[0].problem


def test_reading_the_damaged_records_themselves_is_an_error(log: EmbeddedLog) -> None:
    path = active(log)
    change(path, lambda data: data.__setitem__(slice(700, 720), bytes(20)))
    fresh = EmbeddedLog(log.root)
    _, error = read(fresh)
    assert error is not None
    assert error.resume is not None
    assert isinstance(read(fresh, error.resume - 1)[1], DamagedLog)


def test_a_segment_that_lost_its_end_is_reported_and_not_written_over(log: EmbeddedLog) -> None:
    path = active(log)
    change(path, lambda data: data.__delitem__(slice(len(data) - 50, None)))
    fresh = EmbeddedLog(log.root)
    before, error = read(fresh)
    assert before == list(range(90))
    assert error is not None
    with pytest.raises(DamagedLog, match="has lost its end"), fresh.producer("t") as producer:
        producer.send_batch([{"n": 1}])
    assert any("lost its end" in finding.problem for finding in fresh.verify("t").findings)


def test_a_missing_segment_is_reported(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path / "log", segment_bytes=1000)
    log.create_topic("t", "n BIGINT")
    with log.producer("t") as producer:
        for start in range(0, 100, 10):
            producer.send_batch([{"n": n} for n in range(start, start + 10)])
    segments = sorted((log.root / "topics/t/0").glob("*.log"))
    assert len(segments) > 3
    segments[2].unlink()
    before, error = read(EmbeddedLog(log.root))
    assert error is not None
    assert before == list(range(int(segments[2].stem)))
    assert error.resume == int(segments[3].stem)
    assert not log.verify("t").ok


def test_a_torn_tail_is_cut_back_and_appending_goes_on(log: EmbeddedLog) -> None:
    with open(active(log), "ab") as file:
        file.write(b"HWF1 half a header")
    fresh = EmbeddedLog(log.root)
    assert read(fresh) == (list(range(100)), None)
    with fresh.producer("t") as producer:
        producer.send_batch([{"n": 100}])
    assert read(fresh) == (list(range(101)), None)
    assert fresh.verify("t").ok


def test_a_frame_stored_twice_is_found_by_its_producers_sequence(log: EmbeddedLog) -> None:
    """Bytes with right checksums in the wrong place: only the chain of sequences tells."""
    from headwater.log.embedded.partition import frame

    path = active(log)
    data = path.read_bytes()
    header = frame.unpack(data)
    assert header is not None
    sizes, at = [], 0
    while at < len(data):
        found = frame.unpack(data, at)
        assert found is not None
        sizes.append((at, found))
        at += found.size()
    frames = [(place, h) for place, h in sizes if h.rows]
    place, last = frames[-1]
    earlier_place, earlier = frames[-2]
    payload = data[earlier_place + earlier.size() - earlier.payload_size : earlier_place + earlier.size()]
    forged = frame.pack(earlier._replace(base=last.base, last=last.last)) + payload
    path.write_bytes(data[:place] + forged + data[place + last.size() :])
    assert any('producer "p": sequence' in f.problem for f in EmbeddedLog(log.root).verify("t").findings)


def head_of(log: EmbeddedLog) -> Path:
    return log.root / "topics/t/0/head"


@pytest.fixture(params=["writable", "read-only"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "read-only":  # the tests may run as root, who may write anywhere
        monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    return str(request.param)


@pytest.mark.parametrize("damage", ["zeros", "short", "missing"])
def test_a_damaged_head_does_not_make_the_log_empty(log: EmbeddedLog, place: str, damage: str) -> None:
    def spoil() -> None:
        if damage == "missing":
            head_of(log).unlink(missing_ok=True)
        else:
            size = head_of(log).stat().st_size
            head_of(log).write_bytes(bytes(size if damage == "zeros" else 5))

    assert read(log) == (list(range(100)), None)
    for each in (log, EmbeddedLog(log.root)):  # one that has been read from, and a new one
        spoil()
        assert read(each) == (list(range(100)), None)
        assert each.resolve("t", "latest").offsets == {0: 100}
        assert each.describe("t").partitions[0].newest is not None
    assert EmbeddedLog(log.root).verify("t").ok == (place == "writable")  # where it has been mended


def test_an_open_reader_keeps_the_last_good_head(log: EmbeddedLog) -> None:
    with log.consumer("t", "g") as consumer:
        seen = []
        while (batch := consumer.poll(0.1)) is not None:
            seen += batch.column("n").to_pylist()
        change(head_of(log), lambda data: data.__setitem__(slice(0, 8), b"\xff" * 8))
        assert consumer.poll(0.1) is None
        with log.producer("t") as producer:
            producer.send_batch([{"n": 100}])
        batch = consumer.poll(1)
        assert batch is not None
        assert seen + batch.column("n").to_pylist() == list(range(101))


def test_a_head_and_a_segment_that_are_both_unreadable_are_reported(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    for path in (head_of(log), active(log)):
        path.write_bytes(bytes(path.stat().st_size))
    fresh = EmbeddedLog(log.root)
    with pytest.raises(DamagedLog):
        fresh.resolve("t", "latest")
    assert not fresh.verify("t").ok
    active(log).unlink()
    with pytest.raises(DamagedLog, match="head"):
        fresh.resolve("t", "latest")


def test_an_unfinished_append_is_not_read_where_the_head_is_worked_out(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    data = active(log).read_bytes()
    active(log).write_bytes(data[:-20])
    head_of(log).write_bytes(b"torn")
    assert read(EmbeddedLog(log.root)) == (list(range(90)), None)
    assert active(log).read_bytes() == data[:-20]


def test_reading_cuts_nothing_off_where_head_and_segment_are_damaged(log: EmbeddedLog) -> None:
    change(active(log), lambda data: data.__setitem__(slice(1200, 1210), bytes(10)))
    head_of(log).write_bytes(b"torn")
    damaged = active(log).read_bytes()
    fresh = EmbeddedLog(log.root)
    before, error = read(fresh)
    assert error is not None
    assert error.resume is not None
    assert before + list(range(len(before), error.resume)) + read(fresh, error.resume)[0] == list(range(100))
    assert not fresh.verify("t").ok
    assert active(log).read_bytes() == damaged
