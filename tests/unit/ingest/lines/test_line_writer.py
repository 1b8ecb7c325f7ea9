"""Lines appended to a topic, and those that do not fit."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

import headwater
from headwater import Log
from headwater.errors import RowError
from headwater.ingest.lines import line_writer
from headwater.ingest.lines.decoding import json_decoder
from headwater.ingest.lines.line_writer import LineDestination, LineWriter, OnBadLine
from headwater.ingest.status import IngestCounts


@pytest.fixture
def log() -> Iterator[Log]:
    with headwater.open("memory:") as opened:
        opened.create_topic("t", "id BIGINT NOT NULL", partitions=2)
        yield opened


def writer(log: Log, counts: IngestCounts, on_error: OnBadLine = "dead_letter") -> LineWriter:
    return LineWriter(
        LineDestination(log, "t", "t", json_decoder(log.topic("t")), on_error), counts, threading.Event()
    )


def ids(log: Log) -> list[int]:
    return sorted(value for batch in log.read("t") for value in batch.column("id").to_pylist())


LINES = [b'{"id": 1}', b"", b"odd", b'{"id": 4}', b'{"id": null}', b'{"id": 6}']


@pytest.mark.parametrize("first", [None, 10])
def test_lines_that_fit_are_rows_and_the_others_dead_letters(log: Log, first: int | None) -> None:
    counts = IngestCounts()
    with writer(log, counts) as lines:
        lines.write(LINES, "here", first)
    assert ids(log) == [1, 4, 6]
    dead = [row for batch in log.read("t.dead") for row in batch.to_pylist()]
    assert [(row["text"], row["line"]) for row in dead] == [
        ("odd", None if first is None else 13),
        ('{"id": null}', None if first is None else 15),
    ]
    assert all(row["reason"] and row["source"] == "here" for row in dead)
    assert counts.to_dict() == {"lines": 5, "rows": 3, "dead": 2}


def test_numbered_lines_that_come_again_are_stored_once(log: Log) -> None:
    for _ in range(2):
        with writer(log, IngestCounts()) as lines:
            lines.write(LINES[:3], "here", 0)
            lines.write(LINES[3:], "here", 3)
    assert ids(log) == [1, 4, 6]
    assert sum(map(len, log.read("t.dead"))) == 2


def test_a_line_that_does_not_fit_stops_the_work_if_that_is_asked(log: Log) -> None:
    counts = IngestCounts()
    lines = writer(log, counts, "stop")
    with pytest.raises(RowError, match='a line from here does not fit topic "t"'):
        lines.write(LINES, "here")
    lines.close()
    assert "t.dead" not in {topic.name for topic in log.topics()}


def test_of_a_line_that_is_too_long_the_beginning_is_kept(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_writer, "LONGEST", 20)
    monkeypatch.setattr(line_writer, "BEGINNING", 5)
    counts = IngestCounts()
    with writer(log, counts) as lines:
        lines.write([b"\xff" * 21, b"x" * 21], "here")
    dead = [row for batch in log.read("t.dead") for row in batch.to_pylist()]
    assert [(row["text"], row["bytes"]) for row in dead] == [(None, b"\xff" * 5), ("xxxxx", None)]
    assert counts.to_dict() == {"lines": 2, "too_long": 2}
