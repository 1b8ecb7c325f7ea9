"""Finding the rows on which something fails that is done with many at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headwater.bisection import failing


@given(st.lists(st.booleans(), max_size=40))
def test_each_place_that_fails_is_found_and_the_others_are_done_once_in_order(bad: list[bool]) -> None:
    done: list[int] = []

    def attempt(start: int, end: int) -> str | None:
        if any(bad[start:end]):
            return f"{start} to {end}"
        done.extend(range(start, end))
        return None

    found = list(failing(len(bad), attempt))
    assert found == [(place, f"{place} to {place + 1}") for place, is_bad in enumerate(bad) if is_bad]
    assert done == [place for place, is_bad in enumerate(bad) if not is_bad]


def test_nothing_behind_a_place_is_attempted_before_it_is_asked_for() -> None:
    attempts: list[tuple[int, int]] = []

    def attempt(start: int, end: int) -> bool | None:
        attempts.append((start, end))
        return start <= 1 < end or None

    assert next(failing(4, attempt)) == (1, True)
    assert attempts == [(0, 4), (0, 2), (0, 1), (1, 2)]


def test_what_fails_only_together_is_no_place() -> None:
    assert list(failing(4, lambda start, end: end - start > 1 or None)) == []
