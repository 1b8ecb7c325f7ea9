"""A multimap of integers against sets."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.memory.int_multimap import IntMultimap
from headwater.operators.memory.numbered_rows import NOWHERE
from soaking import examples


def contents(multimap: IntMultimap, some: list[int]) -> list[tuple[int, int]]:
    found = multimap.get(np.array(some, np.int64))
    return sorted(zip(np.array(some)[found.of].tolist(), found.numbers.tolist(), strict=True))


@examples(150)
@given(st.lists(st.dictionaries(st.integers(0, 60), st.integers(-1, 5), max_size=40), max_size=30))
def test_numbers_that_move_between_bags_are_found_where_they_are(steps: list[dict[int, int]]) -> None:
    multimap, held = IntMultimap(), dict[int, int]()
    for step in steps:
        leave = [(held[number], number) for number in step if number in held]
        enter = [(key, number) for number, key in step.items() if key >= 0]
        multimap.remove(*np.array(leave, np.int64).reshape(-1, 2).T)
        multimap.add(*np.array(enter, np.int64).reshape(-1, 2).T)
        held = {n: key for n, key in (held | step).items() if key >= 0}
        assert contents(multimap, [0, 1, 2, 3, 4, 5, 9, NOWHERE]) == sorted(
            (key, n) for n, key in held.items()
        )
        assert multimap.count(np.array([3, 9, NOWHERE])).tolist() == [
            sum(b == 3 for b in held.values()),
            0,
            0,
        ]
        assert multimap._held == multimap._room.sum()


def test_memory_follows_what_bags_hold_and_not_what_they_have_held() -> None:
    multimap, rng = IntMultimap(), np.random.default_rng(1)
    for _ in range(200):
        numbers = rng.permutation(1000)[:500]
        where = rng.integers(0, 40, 500)
        multimap.add(where, numbers)
        multimap.remove(where, numbers)
    assert len(multimap._array) < 10_000
    assert contents(multimap, list(range(40))) == []


def test_a_bag_of_many_is_looked_up_beside_bags_of_one() -> None:
    multimap = IntMultimap()
    multimap.add(np.append(np.zeros(1000, np.int64), np.arange(1, 100)), np.arange(1099))
    assert contents(multimap, [0, 50]) == [*((0, n) for n in range(1000)), (50, 1049)]
