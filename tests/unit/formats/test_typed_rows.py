"""Rows of Python values: fields by name, values exact or refused."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from headwater import topic
from headwater.formats import typed_rows
from headwater.formats.typed_rows import DICTS

ORDERS = topic.create("orders", "id BIGINT NOT NULL, at TIMESTAMP, s STRUCT<x: INT NOT NULL>", key="id")


def test_missing_fields_are_null_and_others_are_left_out() -> None:
    rows: list[dict[str, Any]] = [{"id": 1, "more": 2}, {"id": 2, "s": {"x": 1, "y": 2}}]
    batch, bad = typed_rows.fit(rows, ORDERS, DICTS)
    assert bad == []
    assert batch.to_pylist() == [{"id": 1, "at": None, "s": None}, {"id": 2, "at": None, "s": {"x": 1}}]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({}, 'column "id" of topic "orders" is part of the key'),
        ({"id": True}, 'column "id" is BIGINT'),
        ({"id": 1, "at": 5}, "does not say in which unit"),
        ({"id": 1, "at": "2026-01-01"}, 'column "at" is TIMESTAMP'),
        ({"id": 1, "s": {}}, 'field "s.x" is NOT NULL'),
        ({"id": 1, "s": [1]}, 'column "s" is STRUCT<x: INT NOT NULL>'),
    ],
)
def test_a_row_that_does_not_fit_is_named_and_the_others_kept(row: dict[str, Any], said: str) -> None:
    batch, bad = typed_rows.fit([{"id": 7}, row, {"id": 8}], ORDERS, DICTS)
    assert batch.column("id").to_pylist() == [7, 8]
    assert [at for at, _ in bad] == [1]
    assert said in str(bad[0][1])


def test_json_that_has_no_number_for_a_value_refuses_it() -> None:
    free = topic.create("t", "a VARIANT, b INT")
    batch, bad = typed_rows.fit([{"a": float("nan")}, {"a": [datetime(2026, 1, 1, tzinfo=UTC)]}], free, DICTS)
    assert batch.column("a").to_pylist() == ['["2026-01-01T00:00:00.000000Z"]']
    assert [at for at, _ in bad] == [0]
