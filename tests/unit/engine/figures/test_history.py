"""Points over two days: bounded however long they come, and the same as a slow reading of all of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.engine.figures.figure_store import open_for_writing, transaction
from headwater.engine.figures.history import (
    COLUMNS,
    LIMIT,
    RESOLUTIONS,
    Point,
    add_points,
    read_history,
)

NOON = 1_767_268_800


def write(home: Path, seconds: list[int], point: Point) -> None:
    db = open_for_writing(home)
    for second in seconds:
        with transaction(db):
            add_points(db, float(second), [point])
    db.close()


def count(home: Path) -> int:
    db = open_for_writing(home)
    try:
        return int(db.execute("SELECT count(*) FROM points").fetchone()[0])
    finally:
        db.close()


def test_the_last_points_are_those_of_each_second_and_unknown_where_nothing_was_noted(tmp_path: Path) -> None:
    write(tmp_path, [NOON, NOON + 1, NOON + 3], Point("seen", rate=5.0, late=1))
    found = read_history(tmp_path, "seen", NOON + 3.5, since=5, points=100)
    assert found.time == tuple(range(NOON - 1, NOON + 4))
    assert found.rate == (None, 5.0, 5.0, None, 5.0)
    assert found.late == (None, 1, 1, None, 1)
    assert found.state_bytes == (None,) * 5


def test_figures_that_were_never_noted_are_unknown(tmp_path: Path) -> None:
    found = read_history(tmp_path, "seen", NOON, since=600, points=3)
    assert found.rate == (None,) * 3
    assert set(found.to_dict()) == {"time", *COLUMNS}


def test_coarse_points_have_the_mean_rate_the_sum_of_late_rows_and_the_largest_lag(tmp_path: Path) -> None:
    db = open_for_writing(tmp_path)
    for second in range(25):
        with transaction(db):
            add_points(db, NOON + second, [Point("seen", rate=float(second), lag=second, late=1, dead=2)])
    stored = db.execute("SELECT time, rate, lag, late, dead FROM points WHERE width = 10").fetchall()
    db.close()
    assert stored == [(NOON, 4.5, 9, 10, 20), (NOON + 10, 14.5, 19, 10, 20)]


def test_what_a_killed_runner_left_is_merged_by_the_next_one(tmp_path: Path) -> None:
    write(tmp_path, list(range(NOON, NOON + 8)), Point("seen", late=1))
    write(tmp_path, [NOON + 300], Point("seen", late=0))
    found = read_history(tmp_path, "seen", NOON + 300, since=3_600, points=3_600)
    assert found.late[found.time.index(NOON)] == 8


def test_there_are_never_more_points_than_the_limit(tmp_path: Path) -> None:
    db, point = open_for_writing(tmp_path), Point("seen", rate=1.0, lag=1)
    with transaction(db):  # in one, for speed: three days, every second of some hours and of others few
        for second in (*range(0, 1_500), *range(1_500, 260_000, 97), *range(260_000, 261_000)):
            add_points(db, NOON + second, [point])
    held = db.execute("SELECT count(*) FROM points").fetchone()[0]
    db.close()
    assert held <= LIMIT
    assert (tmp_path / "figures.db").stat().st_size < 2_000_000


def test_points_of_a_clock_that_was_wrong_do_not_stay_for_ever(tmp_path: Path) -> None:
    write(tmp_path, [NOON + 10**7, NOON], Point("seen", rate=1.0))
    assert count(tmp_path) == 1


def test_a_node_that_is_no_more_goes_with_its_last_point(tmp_path: Path) -> None:
    write(tmp_path, [NOON, NOON + 70], Point("old"))
    write(tmp_path, [NOON + RESOLUTIONS[-1].kept + 200], Point("new"))
    assert count(tmp_path) == 1


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.integers(0, 400), min_size=1, max_size=60, unique=True).map(sorted),
    st.integers(1, 500),
    st.integers(1, 50),
)
def test_any_reading_of_seconds_is_what_a_slow_one_gives(
    tmp_path_factory: pytest.TempPathFactory, seconds: list[int], since: int, points: int
) -> None:
    home = tmp_path_factory.mktemp("figures")
    db = open_for_writing(home)
    with transaction(db):
        for second in seconds:
            add_points(db, NOON + second, [Point("seen", rate=float(second), lag=second, late=second)])
    db.close()
    found = read_history(home, "seen", NOON + seconds[-1], since=since, points=points)
    step = found.time[1] - found.time[0] if len(found.time) > 1 else NOON + seconds[-1] + 1 - found.time[0]
    assert len(found.time) <= points and step * len(found.time) >= since
    for index, begin in enumerate(found.time):
        there = [second for second in seconds if begin <= NOON + second < begin + step]
        assert found.lag[index] == max(there, default=None)
        assert found.late[index] == (sum(there) if there else None)
        assert found.rate[index] == (pytest.approx(sum(there) / len(there)) if there else None)
