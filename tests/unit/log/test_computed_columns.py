"""Ranges learn their times and producers from records that are read many at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.log import computed_columns
from headwater.log.appended_range import AppendedRange
from headwater.record import META

RECORDS = st.lists(st.tuples(st.none() | st.integers(0, 99), st.sampled_from("ab")), max_size=30)


@given(RECORDS, st.data())
def test_ranges_tell_each_producers_newest_time_and_cover_what_they_covered(
    records: list[tuple[int | None, str]], data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(records)))) | {0, len(records)})
    marks = data.draw(st.sets(st.sampled_from(cuts)))
    appended: list[AppendedRange] = []
    for base, end in pairwise(cuts):
        appended.append(AppendedRange(0, base, end, "gateway", 7, None))
        if end in marks:
            appended.append(AppendedRange(0, end, end, "gateway", 7, 50, mark=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(computed_columns, "TOGETHER", data.draw(st.integers(1, 40)))
        found = list(computed_columns.ranges(appended, lambda first, last: read(records, first, last)))
    assert [each for each in found if each.mark] == [each for each in appended if each.mark]
    expected: dict[tuple[int, str], int | None] = {}
    for each in (one for one in appended if not one.mark):
        for time, who in records[each.base : each.end]:
            known = expected.setdefault((each.end, who), None)
            expected[each.end, who] = time if known is None else max(known, time or known)
    told = {(each.end, each.producer): each.newest for each in found if not each.mark}
    assert told == expected
    assert sum(each.end - each.base for each in found) == len(records)


def read(records: list[tuple[int | None, str]], first: int, last: int) -> Iterator[pa.RecordBatch]:
    rows = [
        {"_offset": at, "_occurred": time, "_producer": who}
        for at, (time, who) in enumerate(records)
        if first <= at < last
    ]
    for half in (rows[: len(rows) // 2], rows[len(rows) // 2 :]):
        schema = pa.schema([(name, META[name]) for name in ("_offset", "_occurred", "_producer")])
        yield pa.RecordBatch.from_pylist(half, schema=schema)
