"""What counts as equal when a view or a stream is proved: one definition for both."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import schema as schemas
from headwater import topic
from headwater.engine.proof.compare import compare_by_key, compare_counts
from headwater.engine.proof.equality import comparable, comparable_value
from headwater.engine.proof.verdict import Verdict
from headwater.pipeline.declaration import Table
from soaking import examples

NAN = float("nan")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SAME = [
    ("VARIANT", '{"a": 1, "b": [1.0, null]}', '{"b":[1,null],"a":1}'),
    ("VARIANT", '{"a": 1, "a": 2}', '{"a": 2}'),
    ("VARIANT", "[1, 1.0, 10e-1, -0.0]", "[1e0, 1, 1.00, 0]"),
    ("VARIANT", '"\\u00e9"', '"é"'),
    ("VARIANT", "not json", "not json"),
    ("VARIANT", "[" * 10_000, "[" * 10_000),
    ("MAP<STRING, INT>", [("x", 1), ("y", None)], [("y", None), ("x", 1)]),
    ("STRUCT<m: MAP<STRING, DOUBLE>>", {"m": [("a", NAN), ("b", 1.0)]}, {"m": [("b", 1.0), ("a", NAN)]}),
    ("DOUBLE", NAN, NAN),
    ("DOUBLE", 0.0, -0.0),
    ("ARRAY<ARRAY<DOUBLE>>", [[0.0], None], [[-0.0], None]),
    ("DECIMAL(10,2)", Decimal("1.5"), Decimal("1.50")),
    ("TIMESTAMP", NOON, NOON.astimezone(timezone(timedelta(hours=2)))),
    ("BINARY", b"a\x00", b"a\x00"),
]
DIFFERENT = [
    ("VARIANT", '{"a": 1}', '{"a": true}'),
    ("VARIANT", '["bool", 1]', "true"),
    ("VARIANT", "[1, 2]", "[2, 1]"),
    ("VARIANT", "null", None),
    ("VARIANT", "null", '["null"]'),
    ("VARIANT", "18446744073709551616", "18446744073709551617"),
    ("VARIANT", "0.1", "0.10000000000000000001"),
    ("VARIANT", '"1"', "1"),
    ("VARIANT", "NaN", "nan"),
    ("MAP<STRING, INT>", [("x", 1)], [("x", 2)]),
    ("ARRAY<INT>", [1, 2], [2, 1]),
    ("STRING", "1.0", "1.00"),
    ("STRING", "é", "e\u0301"),
    ("STRUCT<a: INT, b: INT>", {"a": 1, "b": 2}, {"a": 2, "b": 1}),
    ("INT", None, 0),
    ("DOUBLE", NAN, None),
    ("DOUBLE", 0.1, 0.1 + 2**-56),
    ("TIMESTAMP", NOON, NOON + timedelta(microseconds=1)),
    ("BINARY", b"a", b"a\x00"),
    ("BINARY", b"", None),
]


def both(kind: str, one: Any, other: Any) -> tuple[Any, Any]:
    schema = schemas.parse(f"v {kind}")
    first, second = pa.array([one, other], schema.field("v").type).to_pylist()
    return comparable({"v": first}, schema), comparable({"v": second}, schema)


@pytest.mark.parametrize(("kind", "one", "other"), SAME)
def test_what_says_the_same_is_equal(kind: str, one: Any, other: Any) -> None:
    first, second = both(kind, one, other)
    assert first == second
    assert hash(first) == hash(second)


@pytest.mark.parametrize(("kind", "one", "other"), DIFFERENT)
def test_what_does_not_is_not(kind: str, one: Any, other: Any) -> None:
    first, second = both(kind, one, other)
    assert first != second


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FREE = pa.field("v", pa.string(), metadata=schemas.VARIANT)


def shuffled(given: Any, seed: int) -> Any:
    """The same with the names of objects in another order."""
    if isinstance(given, list):
        return [shuffled(each, seed) for each in given]
    if not isinstance(given, dict):
        return given
    names = list(given)
    random.Random(seed).shuffle(names)
    return {name: shuffled(given[name], seed) for name in names}


@examples(200)
@given(JSON, st.integers(0, 9))
def test_free_json_is_equal_however_it_is_written(given: Any, seed: int) -> None:
    one = json.dumps(given)
    other = json.dumps(shuffled(given, seed), ensure_ascii=False, indent=1)
    assert comparable_value(one, FREE) == comparable_value(other, FREE)
    assert hash(comparable_value(one, FREE)) == hash(comparable_value(other, FREE))


def said(given: Any) -> Any:
    """What JSON says, as nothing else: the kind of everything beside it."""
    if isinstance(given, list):
        return ["list", *map(said, given)]
    if isinstance(given, dict):
        return {"object": {name: said(each) for name, each in given.items()}}
    number = isinstance(given, int | float) and not isinstance(given, bool)
    return ["number" if number else type(given).__name__, given]


@examples(300)
@given(JSON, JSON)
def test_free_json_that_says_something_else_is_not(one: Any, other: Any) -> None:
    first, second = (comparable_value(json.dumps(each), FREE) for each in (one, other))
    assert (first == second) == (said(one) == said(other))


NESTED = schemas.parse("k BIGINT, m MAP<STRING, DOUBLE>, l ARRAY<STRUCT<d: DECIMAL(9,3), b: BINARY>>")
FLOATS = st.sampled_from([None, 0.0, -0.0, NAN, 1.5])
ROWS = st.fixed_dictionaries(
    {
        "k": st.integers(0, 3),
        "m": st.none() | st.dictionaries(st.sampled_from("xyz"), FLOATS),
        "l": st.lists(
            st.none()
            | st.fixed_dictionaries(
                {"d": st.sampled_from([None, Decimal("1"), Decimal("1.000")]), "b": st.binary(max_size=1)}
            ),
            max_size=2,
        ),
    }
)


def stored(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows as they come back: another scale, maps the other way round, the same zero."""
    turned = [{**row, "m": None if row["m"] is None else [*reversed(row["m"].items())]} for row in rows]
    made = pa.Table.from_pylist(turned, schema=NESTED)
    return [
        {**row, "m": row["m"] and [(k, v if v else v and 0.0) for k, v in row["m"]]}
        for row in made.to_pylist()
    ]


@examples(100)
@given(st.lists(ROWS, max_size=6))
def test_a_stream_and_a_view_that_hold_the_same_are_equal(rows: list[dict[str, Any]]) -> None:
    node = Table(name="t", file="", line=0, key=("k",), declared=topic.create("t", NESTED, key="k"))
    plain = pa.Table.from_pylist(
        [{**row, "m": None if row["m"] is None else [*row["m"].items()]} for row in rows], schema=NESTED
    ).to_pylist()
    verdict = compare_counts(node, plain, stored(rows)[::-1], NESTED)
    assert (verdict.ok, verdict.equal) == (True, len(rows))
    by_key = {row["k"]: number for number, row in enumerate(rows)}
    wanted, found = ([listed[number] for number in by_key.values()] for listed in (plain, stored(rows)))
    assert compare_by_key(node, wanted, found[::-1], NESTED) == Verdict("t", equal=len(by_key))


@pytest.mark.parametrize("way", [compare_by_key, compare_counts])
def test_every_row_that_is_there_on_one_side_only_is_told(way: Callable[..., Verdict]) -> None:
    node = Table(name="t", file="", line=0, key=("k",), declared=topic.create("t", NESTED, key="k"))
    one, two, three = ({"k": number, "m": None, "l": []} for number in (1, 2, 3))
    verdict = way(node, [one, two], [two, three], NESTED)
    assert (verdict.equal, verdict.missing, verdict.extra) == (1, (one,), (three,))


@pytest.mark.parametrize("way", [compare_by_key, compare_counts])
def test_a_row_that_is_there_twice_is_no_equal_of_one(way: Callable[..., Verdict]) -> None:
    node = Table(name="t", file="", line=0, key=("k",), declared=topic.create("t", NESTED, key="k"))
    row = {"k": 1, "m": None, "l": []}
    assert way(node, [row], [row, dict(row)], NESTED).extra == (row,)
    assert way(node, [row, dict(row)], [row], NESTED).missing == (row,)
