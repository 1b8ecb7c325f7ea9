"""Rows for a store: the declared columns in their order and types, or the reason why not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import RowError, SchemaError
from headwater.values.fitting import TargetSchema, fit, shaped

SHAPE = replace(shaped('view "v"', "id BIGINT, n INT NOT NULL, note STRING"), key=("id",))
WIDE = pa.schema([("note", pa.string()), ("_deleted", pa.bool_()), ("n", pa.int64()), ("id", pa.int64())])
rows = st.fixed_dictionaries(
    {
        "id": st.integers(0, 9) | st.none(),
        "n": st.integers(0, 9) | st.none(),
        "note": st.text("ab", max_size=2) | st.none(),
        "_deleted": st.sampled_from([True, False, None]),
    }
)


def wrong(row: dict[str, Any]) -> bool:
    return row["id"] is None or (row["n"] is None and not row["_deleted"])


@given(st.lists(rows, max_size=6), st.integers(0, 6))
def test_rows_fit_unchanged_or_the_first_bad_one_is_named(drawn: list[dict[str, Any]], cut: int) -> None:
    parts = [pa.Table.from_pylist(part, schema=WIDE) for part in (drawn[:cut], drawn[cut:])]
    if any(map(wrong, drawn)):
        with pytest.raises(RowError) as refused:
            fit(pa.concat_tables(parts), SHAPE)
        assert refused.value.row is not None
        assert wrong(drawn[refused.value.row])
        return
    fitted = fit(pa.concat_tables(parts), SHAPE)
    assert fitted.rows.schema.types == SHAPE.schema.types
    assert fitted.rows.to_pylist() == [{name: row[name] for name in SHAPE.schema.names} for row in drawn]
    assert fitted.deleted.tolist() == [bool(row["_deleted"]) for row in drawn]
    assert len(fitted) == len(drawn)


def test_without_marks_nothing_is_deleted() -> None:
    fitted = fit(pa.table({"n": [1], "note": [None], "id": [2]}), SHAPE)
    assert not np.any(fitted.deleted)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (pa.table({"id": [1], "n": [1], "nte": ["a"]}), 'view "v" has no column "nte"'),
        (pa.table({"n": [1], "note": ["a"]}), 'lacks key column "id"'),
        (pa.table({"id": [1], "note": ["a"]}), 'lacks column "n"'),
        (pa.Table.from_arrays([pa.array([1])] * 2, names=["id", "id"]), '"id" appears twice'),
        (pa.table({"id": [1], "n": [2**31], "note": ["a"]}), '"n" of view "v" is INT, not int64'),
        (pa.table({"id": [1], "n": [1], "note": [b"a"]}), '"note" of view "v" is STRING, not binary'),
        (
            pa.table({"id": [1], "n": [1], "note": ["a"], "_deleted": [1]}),
            '"_deleted" of view "v" is BOOLEAN',
        ),
    ],
)
def test_what_a_batch_does_wrong_is_told_with_the_stores_name(table: pa.Table, said: str) -> None:
    with pytest.raises(RowError, match=said):
        fit(table, SHAPE)


def test_the_mark_of_deletions_is_no_column_of_a_store() -> None:
    with pytest.raises(SchemaError, match='"_deleted" is reserved'):
        shaped('view "v"', "id BIGINT, _DELETED BOOLEAN")
    assert shaped('view "v"', "id BIGINT") == TargetSchema('view "v"', pa.schema([("id", pa.int64())]))


@pytest.mark.parametrize(("value", "kind"), [(0.12345678901234, "FLOAT"), (2**63 - 1, "DOUBLE")])
def test_a_value_that_would_be_rounded_is_refused_with_its_column(value: float, kind: str) -> None:
    with pytest.raises(RowError, match='"x"'):
        fit(pa.table({"x": [value]}), shaped('view "v"', f"x {kind}"))
