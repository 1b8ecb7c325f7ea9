"""How a user's fold is called, and what is said when it gives back what it should not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headwater.errors import RowError
from headwater.operators.fold import KNOWN, Folding
from headwater.schema import parse

EVENTS = pa.table({"v": [1, 2, 3]})
GROUPS = np.zeros(3, np.int64)


def before(schema: pa.Schema) -> pa.Table:
    """The state of one key that is new."""
    nulls = {field.name: pa.nulls(1, field.type) for field in schema}
    return pa.table({**nulls, KNOWN: [False]})


def fold_rows(fold: Callable[..., Any], ddl: str) -> list[dict[str, Any]]:
    states = Folding(fold, parse(ddl)).rows(before(parse(ddl)), EVENTS, GROUPS)
    return states.to_pylist(maps_as_pydicts="strict")  # type: ignore[no-any-return]


def fold_tables(after: Any, ddl: str = "n BIGINT") -> pa.Table:
    def given(before: pa.Table, events: pa.Table, groups: object) -> Any:
        return after

    return Folding(given, parse(ddl)).tables(before(parse(ddl)), EVENTS, GROUPS)


def test_a_new_key_has_no_state_and_then_the_one_before() -> None:
    seen: list[Any] = []

    def spy(state: Any, event: Any) -> Any:
        seen.append((state, event))
        return {"n": event["v"] * 10}

    assert fold_rows(spy, "n BIGINT") == [{"n": 10}, {"n": 20}, {"n": 30}]
    assert seen == [(None, {"v": 1}), ({"n": 10}, {"v": 2}), ({"n": 20}, {"v": 3})]


def test_the_state_that_a_fold_sees_is_the_one_that_is_stored() -> None:
    seen: list[Any] = []

    def spy(state: Any, event: Any) -> Any:
        seen.append(state)
        return {"f": 0.1, "m": {"a": 1}}

    stored = {"f": float(np.float32(0.1)), "m": {"a": 1}}
    assert fold_rows(spy, "f FLOAT, m MAP<STRING, INT>") == [stored] * 3
    assert seen == [None, stored, stored]


def test_a_shared_dict_that_is_changed_in_place_changes_no_earlier_state() -> None:
    shared = {"n": 0}

    def reset(state: Any, event: Any) -> Any:
        if state is None:
            return shared
        state["n"] += 1
        return state

    assert fold_rows(reset, "n BIGINT") == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert shared == {"n": 0}


@pytest.mark.parametrize(
    ("state", "ddl", "message", "hint"),
    [
        ({}, "n BIGINT", 'fold "wrong" returned no column "n"', None),
        ({"amout": 1}, "amount BIGINT", 'returned no column "amount"', 'did you mean "amout"?'),
        ({"n": 1, "m": 2}, "n BIGINT", 'returned a column "m" that its schema does not have', None),
        (None, "n BIGINT", "returned a NoneType", "return a dict"),
        ({"n": "x"}, "n BIGINT", 'does not fit column "n", which is BIGINT', None),
        ({"n": 2.5}, "n BIGINT", 'does not fit column "n", which is BIGINT', None),
        ({"n": 2**70}, "n BIGINT", 'does not fit column "n", which is BIGINT', None),
        ({"n": 300}, "n TINYINT", 'does not fit column "n", which is TINYINT', None),
        ({"n": None}, "n BIGINT NOT NULL", 'does not fit column "n"', None),
        ({"n": ["a"]}, "n ARRAY<INT>", 'does not fit column "n", which is ARRAY<INT>', None),
    ],
)
def test_a_state_that_does_not_fit_is_refused(state: Any, ddl: str, message: str, hint: str | None) -> None:
    def wrong(before: Any, event: Any) -> Any:
        return state

    with pytest.raises(RowError, match=message) as caught:
        fold_rows(wrong, ddl)
    assert caught.value.hint == hint


def test_whole_floats_and_numpy_numbers_fit_whole_numbers() -> None:
    assert fold_rows(lambda s, e: {"n": np.int64(2), "m": 2.0}, "n BIGINT, m INT")[0] == {"n": 2, "m": 2}


def test_the_columns_of_a_table_are_put_in_order_and_cast() -> None:
    after = pa.table({"m": [1.5, 2.5, None], "n": pa.array([1, 2, 3], pa.int32())})
    assert fold_tables(after, "n BIGINT, m FLOAT").schema == parse("n BIGINT, m FLOAT")


@pytest.mark.parametrize(
    ("after", "message"),
    [
        ([1, 2, 3], 'fold "given" returned a list'),
        (pa.table({"n": [1, 2]}), "returned 2 rows for 3 events"),
        (pa.table({"m": [1, 2, 3]}), 'returned no column "n"'),
        (pa.table({"n": [1, 2, 3], "m": [1, 2, 3]}), 'returned a column "m" that its schema does not have'),
        (pa.Table.from_arrays([EVENTS["v"]] * 2, ["n", "n"]), 'returned the column "n" twice'),
        (pa.table({"n": [1.5, 2, 3]}), 'does not fit column "n", which is BIGINT'),
        (pa.table({"n": ["a", "b", "c"]}), 'does not fit column "n", which is BIGINT'),
    ],
)
def test_a_table_that_does_not_fit_is_refused(after: Any, message: str) -> None:
    with pytest.raises(RowError, match=message):
        fold_tables(after)


def test_a_fold_without_a_name_is_called_by_its_type() -> None:
    class Counter:
        def __call__(self, state: Any, event: Any) -> Any:
            return {}

    with pytest.raises(RowError, match='fold "Counter"'):
        fold_rows(Counter(), "n BIGINT")
