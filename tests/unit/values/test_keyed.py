"""What a batch for a store by key may be, and what it comes to."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headwater.errors import HeadwaterError, RowError, SchemaError, UsageError
from headwater.values.fitting import Fitted
from headwater.values.keyed import declare, settle

STOCK = declare('view "stock"', "item STRING, shelf INT, count BIGINT NOT NULL", ("item", "shelf"))


def table(*rows: tuple[Any, ...], deleted: list[bool | None] | None = None) -> pa.Table:
    item, shelf, count = zip(*rows, strict=True)
    made = pa.table(
        {"item": item, "shelf": pa.array(shelf, pa.int32()), "count": pa.array(count, pa.int64())}
    )
    return made if deleted is None else made.append_column("_deleted", pa.array(deleted, pa.bool_()))


def listed(settled: Fitted) -> list[tuple[Any, ...]]:
    rows = [tuple(row.values()) for row in settled.rows.to_pylist()]
    return [(*row, gone) for row, gone in zip(rows, settled.deleted.tolist(), strict=True)]


def test_the_last_row_of_a_key_counts_and_keys_are_in_order() -> None:
    settled = settle(table(("b", 1, 1), ("a", 2, 2), ("b", 1, 3), ("a", 1, 4)), STOCK)
    assert listed(settled) == [("a", 1, 4, False), ("a", 2, 2, False), ("b", 1, 3, False)]


def test_a_deletion_has_nothing_but_its_key() -> None:
    settled = settle(table(("a", 1, 1), ("b", 1, 2), ("a", 1, None), deleted=[None, False, True]), STOCK)
    assert listed(settled) == [("a", 1, None, True), ("b", 1, 2, False)]


def test_a_deletion_leaves_no_nested_values_either() -> None:
    keyed = declare(
        'view "v"', "id INT, a ARRAY<INT>, m MAP<STRING, INT>, s STRUCT<x: INT>, n DECIMAL(20,2)", "id"
    )
    full = {"id": 1, "a": [1], "m": [("k", 1)], "s": {"x": 1}, "n": Decimal("1.50")}
    given = pa.Table.from_pylist([full, {**full, "id": 2}], schema=keyed.schema)
    settled = settle(given.append_column("_deleted", pa.array([False, True])), keyed)
    assert settled.rows.to_pylist() == [full, {**dict.fromkeys(full), "id": 2}]


def test_a_key_that_comes_back_after_its_deletion_is_there() -> None:
    settled = settle(table(("a", 1, 1), ("a", 1, 2), deleted=[True, False]), STOCK)
    assert listed(settled) == [("a", 1, 2, False)]


def test_columns_are_cast_where_no_value_changes() -> None:
    given = pa.table(
        {
            "shelf": pa.array([1], pa.int64()),
            "count": pa.array([2.0]),
            "item": pa.array(["a"], pa.large_string()).dictionary_encode(),
        }
    )
    assert listed(settle(given, STOCK)) == [("a", 1, 2, False)]


def test_rows_in_many_chunks_are_one_batch() -> None:
    parts = pa.concat_tables([table(("a", 1, n)) for n in range(5)])
    assert listed(settle(parts, STOCK)) == [("a", 1, 4, False)]


def test_a_batch_without_rows_may_lack_columns() -> None:
    assert len(settle(pa.table({}), STOCK)) == 0


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (table((None, 1, 1)), 'key column "item" of view "stock" is null'),
        (table(("a", 1, 1), ("a", None, 1), deleted=[False, True]), 'key column "shelf" .* is null'),
        (table(("a", 1, None)), 'NOT NULL column "count" of view "stock" is null'),
        (pa.table({"item": ["a"], "count": [1]}), 'batch for view "stock" lacks key column "shelf"'),
        (pa.table({"item": ["a"], "shelf": [1]}), 'lacks column "count"'),
        (pa.table({"item": ["a"], "shelf": [1], "cuont": [1]}), 'did you mean "count"'),
        (pa.table({"item": ["a"], "shelf": ["1"], "count": [1]}), "is INT, not string"),
        (pa.table({"item": ["a"], "shelf": [1.5], "count": [1]}), "is INT, not double"),
        (pa.table({"item": ["a"], "shelf": [1], "count": [1], "_deleted": [1]}), "is BOOLEAN, not int64"),
    ],
)
def test_a_batch_that_does_not_fit_is_refused_and_says_why(given: pa.Table, told: str) -> None:
    with pytest.raises(RowError, match=told):
        settle(given, STOCK)


def test_an_unknown_field_inside_a_column_is_not_dropped() -> None:
    keyed = declare('view "v"', "id INT, place STRUCT<x: INT>", "id")
    given = pa.table({"id": pa.array([1], pa.int32()), "place": [{"x": 1, "y": 2}]})
    with pytest.raises(RowError, match='column "place" of view "v" is STRUCT<x: INT>'):
        settle(given, keyed)


@pytest.mark.parametrize(
    ("schema", "key", "error"),
    [
        ("id INT", (), UsageError),
        ("id INT", ("id", "id"), UsageError),
        ("id INT", ("ib",), UsageError),
        ("id DOUBLE", ("id",), UsageError),
        ("id ARRAY<INT>", ("id",), UsageError),
        ("id INT, _DELETED BOOLEAN", ("id",), SchemaError),
    ],
)
def test_a_declaration_that_cannot_be_kept_is_refused(
    schema: str, key: tuple[str, ...], error: type[HeadwaterError]
) -> None:
    with pytest.raises(error):
        declare('view "v"', schema, key)
