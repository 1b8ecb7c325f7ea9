"""Rows that a node should have and has: each is counted once, as equal, missing, extra or different."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.engine.proof.compare import compare_by_key, compare_counts
from headwater.pipeline.node import StreamNode, ViewNode

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64())])
VIEW = ViewNode(name="totals", file="shop.py", line=3, key=("id",))
STREAM = StreamNode(name="moves", file="shop.py", line=3, topic="shop.moves")
ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1)), max_size=8)


def rows(*pairs: tuple[int, int]) -> list[dict[str, Any]]:
    return [{"id": id, "n": n} for id, n in pairs]


def test_rows_of_a_view_are_compared_by_its_key() -> None:
    found = compare_by_key(VIEW, rows((1, 1), (2, 2), (3, 3)), rows((2, 2), (3, 4), (4, 4)), SCHEMA)
    assert found.equal == 1
    assert (found.missing, found.extra) == (({"id": 1, "n": 1},), ({"id": 4, "n": 4},))
    assert found.different == (({"id": 3, "n": 3}, {"id": 3, "n": 4}),)
    assert not found.ok


def test_a_key_that_comes_twice_is_never_equal_twice() -> None:
    found = compare_by_key(VIEW, rows((1, 1), (1, 1)), rows((1, 1)), SCHEMA)
    assert (found.equal, len(found.missing), found.ok) == (1, 1, False)
    assert len(compare_by_key(VIEW, rows((1, 1)), rows((1, 1), (1, 2)), SCHEMA).extra) == 1


@given(ROWS, ROWS)
def test_every_row_is_counted_once(expected: list[tuple[int, int]], stored: list[tuple[int, int]]) -> None:
    for compare, node in ((compare_by_key, VIEW), (compare_counts, STREAM)):
        found = compare(node, rows(*expected), rows(*stored), SCHEMA)
        both = found.equal + len(found.different)
        assert (both + len(found.missing), both + len(found.extra)) == (len(expected), len(stored))
        if compare is compare_counts:
            assert found.ok == (sorted(expected) == sorted(stored))


def test_how_often_a_stream_has_a_row_counts() -> None:
    found = compare_counts(STREAM, rows((1, 1), (1, 1)), rows((1, 1), (2, 2)), SCHEMA)
    assert (found.equal, found.missing, found.extra) == (1, ({"id": 1, "n": 1},), ({"id": 2, "n": 2},))
