"""Rows of a view are counted when it has changed, and not whenever somebody asks."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from headwater.serve.http.row_counts import RowCounts, ViewRowCount
from headwater.sinks import Batch
from headwater.views import ViewStore
from headwater.views.sqlite.reading import SqliteReading


def test_a_view_is_counted_again_only_when_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts, counted, count = RowCounts(), list[int](), SqliteReading.count

    def noted(reading: SqliteReading) -> int:
        counted.append(1)
        return count(reading)

    monkeypatch.setattr(SqliteReading, "count", noted)
    monkeypatch.setattr("headwater.serve.http.throttled.SHARE", 0.0)
    with ViewStore(tmp_path / "views.db") as store:
        sink = store.sink("stock", "item STRING, n BIGINT", "item")
        sink.begin()
        sink.commit(Batch(0, pa.table({"item": ["rum", "tea"], "n": [1, 1]})))
        view = store["stock"]
        assert [counts.count("shop", view) for _ in range(5)] == [ViewRowCount(2, view.sequence())] * 5
        assert len(counted) == 1
        was = view.sequence()
        sink.commit(Batch(1, pa.table({"item": ["ale"], "n": [1]})))
        soon = counts.count("shop", view)
        assert soon == ViewRowCount(2, was), "it says of when it is"
        counts._counted._least = 0.0
        counts._counted._known.clear()
        assert counts.count("shop", view) == ViewRowCount(3, view.sequence())
        assert len(counted) == 2
