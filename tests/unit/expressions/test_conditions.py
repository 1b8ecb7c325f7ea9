"""Conditions with three values, as SQL has them."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headwater.errors import UsageError
from headwater.expressions import parse

ROWS = pa.RecordBatch.from_pydict(
    {
        "n": pa.array([1, 2, None], pa.int64()),
        "x": pa.array([1.0, float("nan"), -0.0]),
        "s": pa.array(["ab%", "b", None]),
        "d": pa.array([Decimal("1.00"), Decimal("2.50"), None], pa.decimal128(38, 2)),
        "at": pa.array([datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3)], pa.timestamp("us", "UTC")),
        "f": pa.array([True, False, None]),
    }
)


def over(text: str) -> list[Any]:
    return list(parse(text).over(ROWS).to_pylist())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n = 1", [True, False, None]),
        ("n <> 1", [False, True, None]),
        ("n <=> NULL", [False, False, True]),
        ("n >= 1.5", [False, True, None]),
        ("x = x", [True, True, True]),
        ("x > 1000000", [False, True, False]),
        ("x = 0", [False, False, True]),
        ("x <= 1", [True, False, True]),
        ("d = 1", [True, False, None]),
        ("d < 2.25", [True, False, None]),
        ("at > '2026-01-01T12:00:00Z'", [False, True, True]),
        ("f AND n = 1", [True, False, None]),
        ("f OR n = 2", [True, True, None]),
        ("f AND FALSE", [False, False, False]),
        ("f OR TRUE", [True, True, True]),
        ("NOT f", [False, True, None]),
        ("NOT f OR n IS NULL", [False, True, True]),
        ("n IS NOT NULL", [True, True, False]),
        ("n IN (2, 3)", [False, True, None]),
        ("n NOT IN (2, NULL)", [None, False, None]),
        ("n BETWEEN 2 AND 3", [False, True, None]),
        ("n NOT BETWEEN 2 AND 3 AND f", [True, False, None]),
        ("s LIKE 'a%'", [True, False, None]),
        ("s LIKE '_'", [False, True, None]),
        (r"s LIKE 'ab\%'", [True, False, None]),
        ("s NOT LIKE '%b'", [True, False, None]),
        ("CASE WHEN n = 1 THEN 'one' WHEN f THEN 'true' ELSE s END", ["one", "b", None]),
        ("CASE WHEN n = 2 THEN 1 ELSE 0.5 END", [0.5, 1.0, 0.5]),
        ("(n + 1) * 2 > 4 AND (s = 'b' OR s IS NULL)", [False, True, None]),
    ],
)
def test_a_condition_is_true_false_or_not_known(text: str, expected: list[Any]) -> None:
    assert over(text) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("n = 's'", "cannot compare int64 with string"),
        ("n AND f", "AND takes a condition"),
        ("CASE WHEN f THEN 1 ELSE 'x' END", "several types"),
        ("s LIKE 5", "LIKE needs a text"),
    ],
)
def test_types_that_do_not_fit_are_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text).type(ROWS.schema)
    assert words in str(caught.value)
