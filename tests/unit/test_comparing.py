"""What counts as equal when a view is proved."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from headwater import schema as schemas
from headwater.engine.comparing import frozen

NAN = float("nan")
SAME = [
    ("VARIANT", '{"a": 1, "b": [1.0, null]}', '{"b":[1,null],"a":1}'),
    ("VARIANT", "not json", "not json"),
    ("MAP<STRING, INT>", [("x", 1), ("y", None)], [("y", None), ("x", 1)]),
    ("STRUCT<m: MAP<STRING, DOUBLE>>", {"m": [("a", NAN), ("b", 1.0)]}, {"m": [("b", 1.0), ("a", NAN)]}),
    ("DOUBLE", NAN, NAN),
    ("ARRAY<ARRAY<DOUBLE>>", [[0.0], None], [[-0.0], None]),
]
DIFFERENT = [
    ("VARIANT", '{"a": 1}', '{"a": true}'),
    ("VARIANT", "[1, 2]", "[2, 1]"),
    ("MAP<STRING, INT>", [("x", 1)], [("x", 2)]),
    ("ARRAY<INT>", [1, 2], [2, 1]),
    ("STRING", "1.0", "1.00"),
    ("STRUCT<a: INT, b: INT>", {"a": 1, "b": 2}, {"a": 2, "b": 1}),
    ("INT", None, 0),
]


def both(kind: str, one: Any, other: Any) -> tuple[Any, Any]:
    schema = schemas.parse(f"v {kind}")
    first, second = pa.array([one, other], schema.field("v").type).to_pylist()
    return frozen({"v": first}, schema), frozen({"v": second}, schema)


@pytest.mark.parametrize(("kind", "one", "other"), SAME)
def test_what_says_the_same_is_equal(kind: str, one: Any, other: Any) -> None:
    first, second = both(kind, one, other)
    assert first == second
    assert hash(first) == hash(second)


@pytest.mark.parametrize(("kind", "one", "other"), DIFFERENT)
def test_what_does_not_is_not(kind: str, one: Any, other: Any) -> None:
    first, second = both(kind, one, other)
    assert first != second
