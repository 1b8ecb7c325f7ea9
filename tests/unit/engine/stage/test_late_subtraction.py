"""Rows less those that were late, for a batch that must give what the stream gave."""

from __future__ import annotations

import pyarrow as pa

from headwater.engine.stage.late_subtraction import without


def left(rows: list[str | None], late: list[str | None]) -> list[str | None]:
    tables = [pa.table({"id": pa.array(ids, pa.string())}) for ids in (rows, late)]
    found: list[str | None] = without(tables[0], tables[1])["id"].to_pylist()
    return found


def test_the_others_keep_their_order() -> None:
    assert left(["c", "a", "d", "b"], ["d"]) == ["c", "a", "b"]


def test_of_equal_rows_as_many_go_as_were_late_and_the_last_first() -> None:
    assert left(["a", "b", "a", "c", "a"], ["a", "a"]) == ["a", "b", "c"]


def test_a_null_is_equal_to_a_null() -> None:
    assert left([None, "a", None], [None]) == [None, "a"]


def test_nothing_goes_where_nothing_was_late() -> None:
    assert left(["a", "a"], []) == ["a", "a"]
