"""What is near a remembered time, against a look at all of them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.groups import Numbers
from headwater.operators.memory.spans import Spans
from soaking import examples

ROWS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(-30, 30)), max_size=30)
ASKED = [(key, at) for key in "abcd" for at in range(-35, 36)]


def keys(rows: list[tuple[str, int]]) -> Numbers:
    return np.array([ord(key) for key, _ in rows], np.int64)


def times(rows: list[tuple[str, int]]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([at for _, at in rows], np.int64)


def distant(rows: list[tuple[str, int]], width: int) -> list[tuple[str, int]]:
    """Return the first rows that are not near one of their key: those that are passed on."""
    held: list[tuple[str, int]] = []
    for key, at in rows:
        if not near(held, key, at, width):
            held.append((key, at))
    return held


def near(held: list[tuple[str, int]], key: str, at: int, width: int) -> bool:
    return any(mine == key and abs(then - at) < width for mine, then in held)


@examples(60)
@given(ROWS, st.integers(1, 12))
def test_a_time_is_free_if_no_remembered_one_of_its_key_is_near(
    rows: list[tuple[str, int]], width: int
) -> None:
    held = distant(rows, width)
    spans = Spans(width)
    for each in (held[::2], held[1::2]):
        spans.add(keys(each), times(each))
    first, last = spans.free(keys(ASKED), times(ASKED) // width)
    free = (first <= times(ASKED)) & (times(ASKED) <= last)
    assert free.tolist() == [not near(held, key, at, width) for key, at in ASKED]
    assert len(spans) == len(held)


@examples(50)
@given(ROWS, st.integers(1, 12), st.integers(-40, 40))
def test_spans_are_forgotten_as_a_whole_and_only_when_they_are_over(
    rows: list[tuple[str, int]], width: int, before: int
) -> None:
    held = distant(rows, width)
    spans = Spans(width)
    spans.add(keys(held), times(held))
    spans.drop(before)
    ends = [(at // width + 1) * width for _, at in held]
    assert len(spans) == sum(end > before for end in ends)
    assert spans.end() == min((end for end in ends if end > before), default=None)


def test_a_key_has_one_time_in_a_span() -> None:
    spans = Spans(10)
    spans.add(np.array([1]), np.array([3]))
    spans.add(np.array([1]), np.array([7]))
    assert len(spans) == 1
    spans.drop(9)
    assert len(spans) == 1
    spans.drop(10)
    assert len(spans) == 0


def test_nothing_remembered_leaves_every_time_free_and_has_no_end() -> None:
    spans = Spans(10)
    first, last = spans.free(np.array([1]), np.array([0]))
    assert first[0] < 0 < 10 < last[0]
    assert spans.end() is None
