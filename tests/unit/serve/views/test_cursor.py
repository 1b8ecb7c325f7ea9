"""Cursors: pages make up the whole, whatever order, whatever values, and while rows come and go."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.errors import UsageError
from headwater.serve.views import cursor
from headwater.sinks import Batch
from headwater.views import ViewStore
from headwater.views.query import ViewQuery

SCHEMA = "a STRING, b BIGINT, n INT, f DOUBLE, d DECIMAL(20,3), t TIMESTAMP"
ROWS = st.dictionaries(
    st.tuples(st.sampled_from(["", "a", "é", "z"]), st.integers(-3, 3)),
    st.fixed_dictionaries(
        {
            "n": st.none() | st.integers(-2, 2),
            "f": st.none() | st.sampled_from([float("nan"), 0.1, -1.0, float("inf")]),
            "d": st.none() | st.decimals(-5, 5, places=3),
        }
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60)
@given(ROWS, st.sampled_from([None, "a", "b", "n", "f", "d"]), st.booleans(), st.integers(1, 5))
def test_pages_make_up_the_whole(rows: dict[Any, Any], order: str | None, down: bool, size: int) -> None:
    with tempfile.TemporaryDirectory() as folder, ViewStore(Path(folder) / "v.db", durability="os") as store:
        sink = store.sink("stock", SCHEMA, ("a", "b"))
        sink.begin()
        view = store.view("stock")
        listed = [{"a": a, "b": b, **row} for (a, b), row in rows.items()]
        sink.commit(Batch(0, pa.Table.from_pylist(listed, view.schema)))
        bare, keyed, paged = ViewQuery(order=order, descending=down), view.keyed, []
        after = None
        while True:
            query = ViewQuery(order=order, descending=down, limit=size, after=after)
            page = view.select(query).to_table()
            paged += page.to_pylist()
            if page.num_rows < size:
                break
            text = cursor.after_last(page.combine_chunks().to_batches()[0], query, keyed)
            after = cursor.values_of(text, bare, keyed)
        assert repr(paged) == repr(view.scan(order=order, descending=down).to_pylist())


def test_a_cursor_of_another_scan_is_refused(tmp_path: Path) -> None:
    with ViewStore(tmp_path / "v.db") as store:
        sink = store.sink("stock", SCHEMA, ("a", "b"))
        sink.begin()
        keyed = store.view("stock").keyed
        batch = pa.RecordBatch.from_pylist([{"a": "x", "b": 1}], schema=keyed.schema)
        text = cursor.after_last(batch, ViewQuery(), keyed)
        assert cursor.values_of(text, ViewQuery(), keyed) == ("x", 1)
        for wrong, query in ((text, ViewQuery(order="n")), (text + "x", ViewQuery()), ("é", ViewQuery())):
            with pytest.raises(UsageError):
                cursor.values_of(wrong, query, keyed)
