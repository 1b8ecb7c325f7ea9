"""Two producers of one topic: what the stream tells, and what a snapshot finds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest

import headwater
from headwater.capture.writing.topic_writer import TopicWriter, UnfitRow
from headwater.errors import RowError
from headwater.log import Log


def rows(numbers: Sequence[int]) -> pa.Table:
    return pa.table({"n": numbers, "at": pa.array([0] * len(numbers), pa.timestamp("us", "UTC"))})


class Numbers(TopicWriter):
    """Writes numbers."""

    def tell(self, *numbers: int) -> None:
        self._settle_snapshot()
        self._stream.send_batch(rows(numbers))

    def find(self, *numbers: int) -> None:
        self._settle_stream()
        self._snapshot.send_batch(rows(numbers))

    def append(
        self, count: int, unfit: dict[int, str], refused: set[int]
    ) -> tuple[list[int], list[UnfitRow]]:
        """Return which rows were sent, and which do not fit."""
        sent: list[int] = []

        def send(start: int, end: int) -> None:
            if refused & set(range(start, end)):
                raise RowError("refused", detail="for a reason")
            sent.extend(range(start, end))

        return sent, self._append_fitting(count, unfit, send)


@pytest.fixture
def log() -> Iterator[Log]:
    with headwater.open("memory:") as opened:
        opened.create_topic("numbers", "n BIGINT, at TIMESTAMP", event_time="at")
        yield opened


def test_what_comes_later_in_the_source_comes_later_in_the_topic(log: Log) -> None:
    with Numbers(log, "crm", "numbers") as writer:
        assert (writer.is_first, writer.producers) == (True, ("capture.crm", "capture.crm.snapshot"))
        for first in range(0, 60, 6):
            writer.tell(first, first + 1, first + 2)
            writer.find(first + 3, first + 4, first + 5)
    assert [n for batch in log.read("numbers") for n in batch.column("n").to_pylist()] == list(range(60))
    with Numbers(log, "crm", "numbers") as again:
        assert (again.is_first, again.stored) == (False, {"numbers": 30})


def test_a_snapshot_that_has_written_nothing_gets_no_mark(log: Log) -> None:
    with Numbers(log, "crm", "numbers") as writer:
        writer.tell(1)
        writer.mark(1_000_000)
        writer.find(2)
        writer.mark(2_000_000)
        marks = [each.producer for each in log.appended_ranges("numbers", 0, 0) if each.mark]
    assert sorted(marks) == ["capture.crm", "capture.crm", "capture.crm.snapshot"]


def test_rows_that_do_not_fit_are_returned_and_the_others_sent_once(log: Log) -> None:
    with Numbers(log, "crm", "numbers") as writer:
        sent, bad = writer.append(9, {4: "too large"}, {7})
    assert sent == [0, 1, 2, 3, 5, 6, 8]
    assert [(each.row, each.reason) for each in bad] == [(4, "too large"), (7, "for a reason")]
