"""Rows and tombstones in one table: what sending and deleting them one by one would make."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import topic
from headwater.errors import RowError
from headwater.schema import TIMESTAMP
from headwater.values.tombstones import from_changes

TOPIC = topic.create(
    "t", "k STRING, n INT NOT NULL, at TIMESTAMP", key="k", event_time="at", cleanup="compact"
)
COLUMNS = pa.schema([("_deleted", pa.bool_()), ("n", pa.int64()), ("k", pa.string()), ("at", TIMESTAMP)])
AT = datetime(2026, 1, 2, tzinfo=UTC)
rows = st.fixed_dictionaries(
    {
        "k": st.sampled_from("abc"),
        "n": st.integers(0, 9),
        "at": st.sampled_from([None, AT]),
        "_deleted": st.sampled_from([True, False, None]),
    }
)


def told(row: dict[str, Any]) -> dict[str, Any]:
    """Return what is stored of a row: of a tombstone the key alone."""
    return {name: row[name] if name == "k" or not row["_deleted"] else None for name in TOPIC.schema.names}


@given(st.lists(rows, min_size=1, max_size=6))
def test_a_tombstone_has_its_key_and_its_time_and_a_row_all_of_it(drawn: list[dict[str, Any]]) -> None:
    [(batch, extras)] = from_changes(pa.Table.from_pylist(drawn, schema=COLUMNS), TOPIC)
    assert batch.to_pylist() == [told(row) for row in drawn]
    assert extras["_deleted"].to_pylist() == [bool(row["_deleted"]) for row in drawn]
    occurred = [row["at"] if row["_deleted"] else None for row in drawn]
    assert extras["_occurred"].to_pylist() == occurred if any(occurred) else "_occurred" not in extras


def test_what_a_tombstone_does_not_keep_may_be_null_or_not_fit_at_all() -> None:
    table = pa.table({"k": ["a", "b"], "n": [1.5, 2.0], "_deleted": [True, False]})
    [(batch, _)] = from_changes(table, TOPIC)
    assert batch.column("n").to_pylist() == [None, 2]


def test_a_row_that_does_not_fit_and_a_tombstone_without_a_key_refuse_all() -> None:
    for bad in ({"k": "b", "n": None, "_deleted": False}, {"k": None, "n": 1, "_deleted": True}):
        table = pa.Table.from_pylist([{"k": "a", "n": 1, "_deleted": False}, bad])
        with pytest.raises(RowError) as refused:
            from_changes(table, TOPIC)
        assert refused.value.row == 1


def test_a_time_that_cannot_be_read_is_refused_with_its_row() -> None:
    far = pa.array([0, 253_402_300_800_000_000]).cast(TIMESTAMP)
    table = pa.table({"k": ["a", "b"], "n": [1, 1], "at": far, "_deleted": [False, True]})
    with pytest.raises(RowError, match='"occurred"') as refused:
        from_changes(table, TOPIC)
    assert refused.value.row == 1


def test_what_is_no_time_does_not_tell_when_a_row_was_deleted() -> None:
    table = pa.table({"k": ["a"], "n": [1], "at": ["noon"], "_deleted": [True]})
    with pytest.raises(RowError, match="does not tell when rows were deleted"):
        from_changes(table, TOPIC)
