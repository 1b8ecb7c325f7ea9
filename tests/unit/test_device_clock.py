"""When an event happened, told by a device whose own clock is wrong."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import clock
from headwater.device_clock import FIRST, LAST, Corrected
from headwater.errors import UsageError

SECOND = 1_000_000
MINUTE = 60 * SECOND
YEAR = 365 * 86_400 * SECOND
NOW = clock.micros(datetime(2026, 3, 1, 12, tzinfo=UTC))
FIELDS = ("at", "earliest", "latest", "trusted")

truths = st.integers(NOW - 10 * YEAR, NOW + 10 * YEAR)
offsets = st.integers(-60 * YEAR, 60 * YEAR)
lengths = st.integers(0, YEAR)


@given(truths, offsets, lengths, lengths, lengths)
def test_the_true_time_lies_between_the_bounds(
    true: int, offset: int, waited: int, delay: int, more: int
) -> None:
    longest = timedelta(microseconds=delay + more + 1)
    device = true + offset
    told = clock.correct(device, device + waited, true + waited + delay, max_delay=longest)
    assert told.trusted
    assert told.earliest <= true <= told.latest
    assert told.at == true + delay, "the estimate is wrong by what the way took, and by nothing else"
    assert told.latest - told.earliest == longest // clock.MICROSECOND


@given(truths, offsets, st.integers(-YEAR, YEAR), lengths, st.integers(1, 60 * YEAR))
def test_whatever_the_device_says_an_event_is_never_after_its_receipt(
    true: int, offset: int, waited: int, delay: int, far: int
) -> None:
    received = true + delay
    told = clock.correct(
        true + offset, true + offset + waited, received, max_offset=timedelta(microseconds=far)
    )
    assert true <= told.latest <= received or told.trusted
    assert told.at <= received
    assert told.trusted == (waited >= 0 and abs(received - (true + offset + waited)) <= far)


def test_a_clock_that_is_years_behind_is_corrected() -> None:
    occurred = datetime(2000, 1, 1, 0, 0, tzinfo=UTC)
    sent = datetime(2000, 1, 1, 0, 10, tzinfo=UTC)
    received = datetime(2026, 3, 1, 12, 0, 2, tzinfo=UTC)
    at = datetime(2026, 3, 1, 11, 50, 2, tzinfo=UTC)
    assert clock.correct(occurred, sent, received) == Corrected(at, None, at, True)


def test_an_event_that_was_sent_before_it_occurred_is_not_trusted() -> None:
    assert clock.correct(NOW, NOW - 1, NOW + MINUTE) == Corrected(NOW + MINUTE, None, NOW + MINUTE, False)


def test_an_offset_over_the_largest_is_not_trusted_but_estimated() -> None:
    given = (NOW - 3 * MINUTE, NOW - 2 * MINUTE, NOW)
    assert clock.correct(*given, max_offset="2 minutes").trusted
    told = clock.correct(*given, max_offset="1 minute", max_delay="1 second")
    assert told == Corrected(NOW - MINUTE, None, NOW, False)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ((None, NOW, NOW), Corrected(NOW, None, NOW, False)),
        ((NOW - 5, None, NOW), Corrected(NOW - 5, None, NOW, False)),
        ((NOW + 5, None, NOW), Corrected(NOW, None, NOW, False)),
        ((NOW - 5, NOW, None), Corrected(NOW - 5, None, None, False)),
        ((None, NOW, None), Corrected(None, None, None, False)),
        ((NOW, LAST + 1, NOW), Corrected(NOW, None, NOW, False)),
        ((FIRST, LAST, NOW), Corrected(FIRST, None, NOW, False)),
    ],
)
def test_what_is_missing_makes_it_the_best_there_is(given: tuple[int | None, ...], told: Corrected) -> None:
    assert clock.correct(*given, max_delay="1 hour") == told


def test_an_earliest_time_that_no_calendar_has_is_not_told() -> None:
    told = clock.correct(FIRST + 5, FIRST + 5, FIRST + 5, max_delay="1 second")
    assert told == Corrected(FIRST + 5, None, FIRST + 5, True)


any_time = st.one_of(
    st.none(),
    st.integers(NOW - 3 * MINUTE, NOW + 3 * MINUTE),
    st.integers(FIRST - 5, LAST + 5),
    st.sampled_from([-(1 << 63), (1 << 63) - 1, FIRST, LAST]),
)
any_length = st.one_of(st.none(), st.timedeltas(min_value=clock.MICROSECOND, max_value=clock.LONGEST))


@given(st.lists(st.tuples(any_time, any_time, any_time), max_size=20), any_length, any_length, st.data())
def test_columns_get_what_single_times_get(
    rows: list[Any], max_delay: timedelta | None, max_offset: timedelta | None, data: st.DataObject
) -> None:
    bounds = {"max_delay": max_delay, "max_offset": max_offset}
    columns = [pa.array([row[place] for row in rows], pa.int64()) for place in range(3)]
    expected = [clock.correct(*row, **bounds) for row in rows]
    cut = data.draw(st.integers(0, len(rows)))
    chunked = [pa.chunked_array([each[:cut], each[cut:]]) for each in columns]
    for told in (clock.correct(*columns, **bounds), clock.correct(*chunked, **bounds)):
        assert [Corrected(**row) for row in told.to_pylist()] == expected


def test_timestamps_of_any_unit_give_timestamps() -> None:
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    for unit in ("s", "ms", "us", "ns"):
        column = pa.array([noon], pa.timestamp(unit, "UTC"))
        [told] = clock.correct(column, column, noon + timedelta(seconds=1), max_delay="1 second").to_pylist()
        assert (told["at"], told["earliest"], told["trusted"]) == (noon + timedelta(seconds=1), noon, True)
    far = pa.array([1 << 60], pa.timestamp("s"))
    assert clock.correct(far, far, noon).to_pylist()[0] == {
        **{"at": noon, "earliest": None, "latest": noon, "trusted": False}
    }


def test_a_column_fits_the_tables_of_the_log() -> None:
    times = pa.chunked_array([[NOW], [NOW + 1]], clock_type := pa.timestamp("us", "UTC"))
    told = clock.correct(times, times, times)
    assert isinstance(told, pa.ChunkedArray)
    assert [(field.name, field.type) for field in told.type] == [
        *((name, clock_type) for name in FIELDS[:3]),
        ("trusted", pa.bool_()),
    ]


@pytest.mark.parametrize("wrong", ["noon", True, 1.5, pa.array(["noon"]), pa.array([1.5])])
def test_what_is_no_time_is_refused(wrong: object) -> None:
    with pytest.raises(UsageError, match="a time cannot be of type"):
        clock.correct(wrong, NOW, NOW)
    with pytest.raises(UsageError, match="a time cannot be of type"):
        clock.correct(pa.array([NOW]), wrong, NOW)
