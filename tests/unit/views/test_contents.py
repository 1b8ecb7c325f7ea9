"""What a view holds, of one moment, though a runner commits meanwhile."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow as pa

from headwater.sinks import Batch
from headwater.views import ViewStore
from headwater.views.contents import contents_of

ROWS = 20_000
"""More than are read at a time."""


def test_rows_and_number_are_of_one_moment_however_slowly_they_are_read(tmp_path: Path) -> None:
    closed: list[bool] = []
    with ViewStore(tmp_path / "views.db") as store, store.sink("people", "id BIGINT, n BIGINT", "id") as sink:
        sink.begin()
        sink.commit(Batch(0, pa.table({"id": range(ROWS), "n": [0] * ROWS})))
        contents = contents_of("people", partial(store.reading, "people", None), lambda: closed.append(True))
        sink.commit(Batch(1, pa.table({"id": range(ROWS), "n": [1] * ROWS})))
        seen = [row["n"] for batch in contents.rows for row in batch.to_pylist()]
    assert (contents.batch, len(seen), set(seen), closed) == (0, ROWS, {0}, [True])


def test_a_view_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    with ViewStore(tmp_path / "views.db") as store:
        contents = contents_of("people", partial(store.reading, "people", None), lambda: None)
        assert (contents.batch, list(contents.rows)) == (-1, [])
