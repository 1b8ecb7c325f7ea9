"""The short way to one row as JSON, where a store has one."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

from headwater.sinks import Batch
from headwater.views import ViewStore


def test_a_stored_row_is_the_row_as_json_with_the_change_up_to_which_it_is(tmp_path: Path) -> None:
    with ViewStore(tmp_path / "views.db") as store:
        sink = store.sink("stock", "item STRING, n BIGINT", "item")
        sink.begin()
        sink.commit(Batch(0, pa.table({"item": ["rum", "tea"], "n": [1, None]})))
        with store.reading("stock", None) as reading:
            row, none = reading.stored_row(lambda _: ("rum",)), reading.stored_row(lambda _: ("ale",))
    assert row is not None and json.loads(row.json() or b"") == {"item": "rum", "n": 1}
    assert (row.sequence, row.version.name) == (2, "stock")
    assert none is not None and none.values is None and none.json() is None
