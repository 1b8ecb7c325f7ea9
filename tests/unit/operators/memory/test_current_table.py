"""A table as it is now against a dict of its rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.groups import Keys
from headwater.operators.memory.current_table import CurrentTable
from headwater.operators.memory.numbered_rows import NOWHERE
from headwater.operators.memory.rows_by_key_and_time import LITTLE
from soaking import examples

SCHEMA = pa.schema([("key", pa.int64()), ("value", pa.int64())])
STEP = st.dictionaries(st.integers(0, 9), st.none() | st.integers(0, 99))


def keys(some: list[int]) -> Keys:
    return np.array(some, np.int64).astype(np.object_)


def change(present: CurrentTable, step: dict[int, int | None]) -> None:
    """Put the rows of a step, and take away those without a value."""
    new = {key: value for key, value in step.items() if value is not None}
    table = pa.table({"key": list(new), "value": list(new.values())}, schema=SCHEMA)
    present.put(present.slots.of(keys(list(new))), table)
    slots = present.slots.find(keys([key for key in step if step[key] is None]))
    present.remove(slots[slots != NOWHERE])
    present.tidy()


@examples(40)
@given(st.lists(STEP, max_size=12))
def test_every_key_has_the_row_that_was_put_last(steps: list[dict[int, int | None]]) -> None:
    present, held = CurrentTable(SCHEMA), dict[int, int]()
    for step in steps:
        change(present, step)
        held = {key: value for key, value in (held | step).items() if value is not None}
        found = present.find(present.slots.find(keys(list(range(11)))))
        assert present.take(found, "value")["value"].to_pylist() == [held.get(key) for key in range(11)]
        assert {row["key"]: row["value"] for row in present.rows().to_pylist()} == held
        assert len(present) == len(held) == len(present.rows())


def test_rows_come_in_the_order_of_their_keys_and_not_of_their_last_change() -> None:
    present = CurrentTable(SCHEMA)
    change(present, {5: 1, 3: 2, 8: 3})
    change(present, {5: 9})
    assert present.rows()["key"].to_pylist() == [5, 3, 8]


def test_what_is_gone_is_at_most_as_much_as_what_is_there_and_a_little() -> None:
    present = CurrentTable(SCHEMA)
    for start in range(0, 5000, 500):
        change(present, {key: key for key in range(start, start + 500)})
        change(present, dict.fromkeys(range(start + 1, start + 500)))
    assert len(present) == 10
    assert max(len(present.slots), len(present._rows)) <= 2 * 10 + LITTLE
    assert present.rows()["value"].to_pylist() == list(range(0, 5000, 500))
    found = present.find(present.slots.find(keys([4500, 4501])))
    assert present.take(found, "value")["value"].to_pylist() == [4500, None]


def test_a_table_without_rows_finds_none() -> None:
    present = CurrentTable(SCHEMA)
    assert present.find(np.array([NOWHERE, 3, 5000])).tolist() == [NOWHERE] * 3
    assert present.rows().equals(SCHEMA.empty_table())
