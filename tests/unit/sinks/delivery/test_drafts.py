"""Rows as deliveries: what each does to its key, against a dictionary."""

from __future__ import annotations

import sqlite3

import orjson
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.sinks.delivery import tables
from headwater.sinks.delivery.drafts import DraftBuilder, delivery_id, ordering_keys
from headwater.sinks.webhook.body import WebhookBody
from headwater.values.fitting import fit, shaped
from headwater.values.keyed import declare

SHAPE = declare("webhook", "k BIGINT, n BIGINT", "k")
ROWS = st.lists(st.lists(st.tuples(st.integers(0, 3), st.none() | st.integers(0, 9)), max_size=8), max_size=4)


@given(ROWS)
def test_a_row_inserts_updates_or_deletes_its_key(batches: list[list[tuple[int, int | None]]]) -> None:
    db = sqlite3.connect(":memory:")
    db.executescript(tables.OUTBOX.tables)
    there, expected, found = set[int](), [], []
    for batch in batches:
        for key, value in batch:
            if value is not None or key in there:
                kind = "delete" if value is None else "update" if key in there else "insert"
                expected.append((kind, key))
            (there.discard if value is None else there.add)(key)
        table = pa.table(
            {
                "k": pa.array([key for key, _ in batch], pa.int64()),
                "n": pa.array([value for _, value in batch], pa.int64()),
                "_deleted": pa.array([value is None for _, value in batch], pa.bool_()),
            }
        )
        fitted = fit(table, SHAPE)
        drafts = DraftBuilder(db, 1, WebhookBody(SHAPE)).drafts(fitted, ordering_keys(fitted, SHAPE), 0.0)
        told = (orjson.loads(draft.body) for draft in drafts)
        found += [(each["type"], each["data"]["k"]) for each in told]
    assert found == expected
    db.close()


def test_rows_without_a_key_are_in_no_lane() -> None:
    shape = shaped("webhook", "n BIGINT")
    assert ordering_keys(fit(pa.table({"n": [1, 2]}), shape), shape) == [None, None]


def test_ids_differ_by_outbox_version_batch_and_row() -> None:
    places = [("a", 1, 1, 1), ("b", 1, 1, 1), ("a", 2, 1, 1), ("a", 1, 2, 1), ("a", 1, 1, 2), ("a", 1, 11, 1)]
    assert len({delivery_id(*place) for place in places}) == len(places)
