"""Rows of two sides matched by digests: whatever differs is found, in whichever batches it comes."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.engine.proof.matching import RowMatcher

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("tags", pa.list_(pa.string()))])
ROWS = st.dictionaries(
    st.integers(0, 30), st.tuples(st.none() | st.text(max_size=2), st.none() | st.lists(st.text(max_size=1)))
)
Held = dict[int, tuple[str | None, list[str] | None]]


def table(rows: Held) -> pa.Table:
    return pa.Table.from_pylist(
        [{"id": key, "name": name, "tags": tags} for key, (name, tags) in rows.items()], schema=SCHEMA
    )


@given(expected=ROWS, found=ROWS, size=st.integers(1, 7))
def test_equal_rows_are_counted_and_the_others_are_left(expected: Held, found: Held, size: int) -> None:
    matcher = RowMatcher(table(expected))
    for batch in table(found).to_batches(max_chunksize=size):
        matcher.take(batch)
    same = {key for key in expected if key in found and expected[key] == found[key]}
    assert matcher.equal == len(same)
    assert matcher.missing() == table({key: row for key, row in expected.items() if key not in same})
    assert matcher.unmatched() == table({key: row for key, row in found.items() if key not in same})


def test_a_row_that_is_there_twice_is_there_once_too_often() -> None:
    rows = table({1: ("ada", None), 2: ("bob", None)})
    for batches in ([rows, rows.slice(0, 1)], [pa.concat_tables([rows, rows.slice(0, 1)]).combine_chunks()]):
        matcher = RowMatcher(rows)
        for each in batches:
            for batch in each.to_batches():
                matcher.take(batch)
        assert (matcher.equal, matcher.missing().num_rows) == (2, 0)
        assert matcher.unmatched().to_pylist() == [{"id": 1, "name": "ada", "tags": None}]
