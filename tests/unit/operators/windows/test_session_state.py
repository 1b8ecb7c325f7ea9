"""The sessions that are held, against a dict of what was written last."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.event_time import NEVER
from headwater.operators.memory.entries import Entries
from headwater.operators.windows.session_state import (
    Sessions,
    ends,
    living,
    partials,
    removed,
    revisions,
    with_status,
)
from soaking import examples
from unit.operators.stepping import SPILLED, TablesInMemory

STATE = pa.schema([("n", pa.int64())])
WRITES = st.dictionaries(
    st.tuples(st.integers(0, 3), st.integers(0, 20)), st.tuples(st.integers(1, 15), st.booleans()), max_size=6
)
Key = tuple[int, int]


def written(writes: dict[Key, tuple[int, bool]]) -> Entries:
    """Return sessions by key and start: how long each is, and whether it has become part of another."""
    lead, start = np.array(list(writes), np.int64).reshape(-1, 2).T
    lasting, away = (list(part) for part in zip(*writes.values(), strict=True)) if writes else ([], [])
    end = start + np.array(lasting, np.int64)
    rows = with_status(pa.table({"n": end}, schema=STATE), end, end * 2, np.array(away, np.bool_))
    return Entries(lead, start, rows)


def listed(found: Entries) -> dict[Key, int]:
    keys = zip(found.major.tolist(), found.minor.tolist(), strict=True)
    return dict(zip(keys, ends(found).tolist(), strict=True))


@examples(50)
@given(st.lists(st.tuples(WRITES, st.integers(0, 8)), max_size=8), st.integers(0, 6))
def test_what_was_written_last_is_held_until_it_is_forgotten(
    steps: list[tuple[dict[Key, tuple[int, bool]], int]], margin: int
) -> None:
    sessions, held, clock = Sessions(STATE, cut=False), dict[Key, int](), 0
    for writes, further in steps:
        writes = {key: write for key, write in writes.items() if key[1] >= clock}
        sessions.put(written(writes))
        new = {key: key[1] + lasting for key, (lasting, _) in writes.items()}
        held = {k: end for k, end in (held | new).items() if k not in writes or not writes[k][1]}
        before, clock = clock, clock + further
        due = sessions.due(clock, NEVER).tolist()
        assert {key for (key, _), end in held.items() if before < end <= clock} <= set(due)
        sessions.drop(clock - margin, clock, NEVER)
        held = {key: end for key, end in held.items() if end > clock - margin}
        found = listed(sessions.all())
        assert {key: end for key, end in found.items() if end > clock - margin} == held
        some = listed(sessions.of(np.array([0, 2])))
        assert some == {key: end for key, end in found.items() if key[0] in (0, 2)}
        timer = sessions.next_timer(margin)
        assert not held or (timer is not None and timer <= max(held.values()) + margin)
        assert timer is None or timer > clock - margin


def test_what_is_out_of_date_is_never_more_than_half_of_everything_for_long() -> None:
    sessions = Sessions(STATE, cut=False)
    for start in range(0, 1000, 10):
        sessions.put(written({(0, start): (5, False)}))
        sessions.drop(start, start, NEVER)
    assert len(sessions) <= 4
    assert listed(sessions.all())[0, 990] == 995


def test_what_lies_in_runs_is_cleared_away_though_each_run_has_a_row_from_the_future() -> None:
    sessions, files = Sessions(STATE, cut=False), TablesInMemory()
    for number in range(200):
        start = 10 * number
        sessions.put(written({(0, start): (5, False)}))
        if number % 10 == 9:
            sessions.put(written({(1, start + 10**6): (5, False)}))
            sessions.fading.runs.save(files, SPILLED)
        sessions.drop(start - 200, start, NEVER)
    assert len([key for key in listed(sessions.all()) if key[0] == 0]) < 100, "of 200, some 20 are alive"


def test_pieces_of_cut_sessions_come_due_at_their_starts() -> None:
    sessions = Sessions(STATE, cut=True)
    sessions.put(written({(1, 5): (50, False), (2, 15): (50, False)}))
    assert sessions.coming.first() == 5
    assert sessions.due(0, 10).tolist() == [1]
    sessions.drop(NEVER, 0, 10)
    assert sessions.coming.first() == 15
    assert Sessions(STATE, cut=False).coming.first() is None


def test_what_is_told_of_sessions_stands_beside_their_partial_results() -> None:
    entries = written({(0, 1): (2, False), (0, 7): (3, True)})
    assert (ends(entries).tolist(), revisions(entries).tolist()) == ([3, 10], [6, 20])
    assert removed(entries).tolist() == [False, True]
    assert partials(entries).equals(pa.table({"n": [3, 10]}))
    assert listed(living(entries)) == {(0, 1): 3}


def test_without_sessions_there_is_nothing_to_wake_for() -> None:
    sessions = Sessions(STATE, cut=True)
    assert (sessions.next_timer(5), len(sessions), len(sessions.all())) == (None, 0, 0)
    assert sessions.due(100, 100).tolist() == []
