"""Sessions with new rows under a new clock, against sessions that are made of all rows anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater import agg
from headwater.operators.event_time import NEVER
from headwater.operators.memory.entries import Entries
from headwater.operators.windows.early import Early
from headwater.operators.windows.session_merge import Combining, SessionChange
from headwater.operators.windows.session_state import ends, partials, removed, revisions, with_status
from headwater.operators.windows.windowing import Windowing
from soaking import examples

GAP = 4
COUNTS = Windowing("session", (), "at", (("n", agg.count()),))
STEPS = st.lists(
    st.tuples(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 40)), max_size=5), st.integers(0, 12)),
    max_size=6,
)
Session = tuple[int, int, int, int]
"""The number of the key, start, how many rows, end."""


def grouped(rows: list[tuple[int, int]]) -> list[Session]:
    """Return the sessions of rows: a row that is less than the gap after another is in its session."""
    made: list[Session] = []
    for key, at in sorted(rows):
        if made and made[-1][0] == key and at < made[-1][3]:
            made[-1] = (key, made[-1][1], made[-1][2] + 1, at + GAP)
        else:
            made.append((key, at, 1, at + GAP))
    return made


def entries(some: list[Session], revision: list[int] | None = None) -> Entries:
    key, start, n, end = np.array(some, np.int64).reshape(-1, 4).T
    revised = end * 0 if revision is None else np.array(revision, np.int64)
    return Entries(
        key, start, with_status(pa.table({"n.count": n}), end, revised, np.zeros(len(some), np.bool_))
    )


def listed(found: Entries) -> list[Session]:
    columns = (found.major, found.minor, partials(found)["n.count"].to_numpy(), ends(found))
    return list(zip(*(column.tolist() for column in columns), strict=True))


def combined(known: Entries, fresh: list[Session], before: int, clock: int) -> SessionChange:
    return Combining(COUNTS, Early(None), before, clock).combined(known, entries(fresh))


@examples(35)
@given(STEPS)
def test_what_is_held_and_what_a_reader_has_is_what_all_rows_make(steps: list[Any]) -> None:
    held: dict[tuple[int, int], tuple[Session, int]] = {}
    reader: dict[tuple[int, int], Session] = {}
    last: dict[tuple[int, int], int] = {}
    rows: list[tuple[int, int]] = []
    clock = NEVER
    for new, further in steps:
        before, clock = clock, max(clock, 0) + further
        rows += new
        known = sorted(held.values())
        change = combined(entries([s for s, _ in known], [r for _, r in known]), grouped(new), before, clock)
        for some, out in ((change.retracted, False), (change.published, True)):
            for each, revision in zip(listed(some), revisions(some).tolist(), strict=True):
                assert revision > last.get(each[:2], -1)
                last[each[:2]] = revision
                reader.update({each[:2]: each} if out else {})
                if not out:
                    del reader[each[:2]]
        told_of = zip(listed(change.written), revisions(change.written).tolist(), strict=True)
        for (each, revision), away in zip(told_of, removed(change.written).tolist(), strict=True):
            held[each[:2]] = (each, revision)
            if away:
                del held[each[:2]]
        everything = grouped(rows)
        assert sorted(session for session, _ in held.values()) == everything
        assert sorted(reader.values()) == [each for each in everything if each[3] <= clock]


def test_a_session_that_nothing_came_to_is_left_alone() -> None:
    change = combined(entries([(0, 0, 1, 4), (1, 0, 1, 4)]), [(1, 3, 1, 7)], NEVER, NEVER)
    assert listed(change.written) == [(1, 0, 2, 7)]
    assert (len(change.published), len(change.retracted)) == (0, 0)


def test_a_row_that_begins_where_a_session_ends_is_not_of_it() -> None:
    change = combined(entries([(0, 0, 1, 4)]), [(0, 4, 1, 8)], NEVER, NEVER)
    assert listed(change.written) == [(0, 4, 1, 8)]


def test_a_session_that_was_visible_and_is_open_again_is_retracted() -> None:
    change = combined(entries([(0, 0, 2, 10)]), [(0, 9, 1, 13)], 10, 12)
    assert listed(change.retracted) == [(0, 0, 2, 10)]
    assert revisions(change.retracted).tolist() == [1]
    assert len(change.published) == 0
    assert revisions(change.written).tolist() == [2]


def test_nothing_known_and_nothing_new_is_no_change() -> None:
    change = combined(entries([]), [], NEVER, 100)
    assert [len(part) for part in (change.written, change.published, change.retracted)] == [0, 0, 0]
