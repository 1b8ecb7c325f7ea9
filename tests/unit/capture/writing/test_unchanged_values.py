"""Values that were not sent again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from changes_kit import CAPTURED, changes
from headwater.capture.change import DELETE, TableChanges
from headwater.capture.writing.unchanged_values import LeftOut, filled

ID_ONLY = replace(CAPTURED, schema=pa.schema([CAPTURED.schema.field("id")]))


def unchanged(told: TableChanges, *rows: int) -> TableChanges:
    mask = np.zeros(len(told), bool)
    mask[list(rows)] = True
    return replace(told, unchanged={"name": mask})


class Topic:
    """What is known of the rows, as the parts come."""

    def __init__(self, **rows: str):
        self.rows: dict[bytes, str | None] = {
            key.removeprefix("k").encode(): name for key, name in rows.items()
        }
        self.left_out = 0

    def known(self, keys: set[bytes]) -> Mapping[bytes, Mapping[str, Any]]:
        return {key: {"name": self.rows[key]} for key in keys if key in self.rows}

    def take(self, told: TableChanges, snapshot: bool = False) -> None:
        for part in filled(told, CAPTURED, self.known, snapshot):
            if isinstance(part, LeftOut):
                self.left_out += len(part.changes)
                continue
            for number, row in enumerate(part.rows.to_pylist()):
                key = str(row["id"]).encode()
                self.rows.pop(key, None)
                if part.operation[number] != DELETE and number not in part.unfit:
                    self.rows[key] = row["name"]


def test_a_value_is_that_of_the_row_before() -> None:
    topic = Topic(k1="one", k2="two")
    topic.take(unchanged(changes(("update", 1, None), ("update", 2, "zwei"), ("update", 2, None)), 0, 2))
    assert topic.rows == {b"1": "one", b"2": "zwei"}


def test_it_goes_along_when_the_key_is_changed() -> None:
    topic = Topic(k1="one")
    moved = changes(("insert", 5, "five"), ("delete", 1, None), ("insert", 2, None))
    topic.take(unchanged(replace(moved, transaction=np.zeros(3, int), index=np.array([0, 1, 1])), 2))
    assert topic.rows == {b"5": "five", b"2": "one"}


def test_a_row_that_nobody_knows_does_not_fit_unless_a_snapshot_will_read_it() -> None:
    told = unchanged(changes(("insert", 1, "a"), ("update", 2, None), ("insert", 3, "c")), 1)
    [part] = filled(told, CAPTURED, Topic().known, snapshot=False)
    assert isinstance(part, TableChanges)
    assert part.unfit == {1: "a value was not sent, and its last one is not known"}
    topic = Topic()
    topic.take(told, snapshot=True)
    assert (topic.rows, topic.left_out) == ({b"1": "a", b"3": "c"}, 1)


def test_columns_that_are_not_captured_are_no_matter() -> None:
    told = unchanged(changes(("update", 1, None)), 0)
    assert list(filled(told, ID_ONLY, Topic().known, False)) == [told]


@given(st.lists(st.tuples(st.sampled_from(["update", "same", "delete"]), st.integers(0, 3)), min_size=1))
def test_all_at_once_is_one_after_the_other(steps: list[tuple[str, int]]) -> None:
    rows: dict[int, str | None] = {id: f"old {id}" for id in range(4)}
    told, expected = [], dict(rows)
    for number, (step, id) in enumerate(steps):
        if step == "delete" or id not in expected:
            told.append(("delete", id, None))
            expected.pop(id, None)
        else:
            value = f"new {number}" if step == "update" else None
            told.append(("update", id, value))
            expected[id] = value if value is not None else expected[id]
    topic = Topic(**{f"k{id}": str(name) for id, name in rows.items()})
    topic.take(
        unchanged(changes(*told), *(n for n, each in enumerate(told) if each[::2] == ("update", None)))
    )
    assert topic.rows == {str(id).encode(): name for id, name in expected.items()}
