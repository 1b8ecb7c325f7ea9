"""A function as a sink: called with every batch, at least once."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.sinks.foreach import ForeachSink
from headwater.sinks.sink import Batch

ROWS = pa.table({"id": [1, 2]})


def test_a_batch_that_is_replayed_is_handed_over_again_under_its_number() -> None:
    calls: list[tuple[int, int]] = []
    sink = ForeachSink(lambda rows, batch: calls.append((batch, rows.num_rows)))
    assert [sink.commit(Batch(number, ROWS)) for number in (0, 1, 1)] == [True, True, True]
    assert calls == [(0, 2), (1, 2), (1, 2)]


def test_a_batch_without_rows_is_handed_over_too() -> None:
    calls: list[int] = []
    ForeachSink(lambda rows, batch: calls.append(rows.num_rows)).commit(Batch(0, ROWS.slice(0, 0)))
    assert calls == [0]


def test_an_error_of_the_function_is_that_of_the_commit() -> None:
    def refuse(rows: pa.Table, batch: int) -> None:
        raise ConnectionError("no line")

    with pytest.raises(ConnectionError, match="no line"):
        ForeachSink(refuse).commit(Batch(0, ROWS))
