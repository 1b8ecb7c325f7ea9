"""Bags of numbers against sets."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.memory.bags import Bags
from headwater.operators.memory.pile import NOWHERE
from soaking import examples


def contents(bags: Bags, some: list[int]) -> list[tuple[int, int]]:
    found = bags.look(np.array(some, np.int64))
    return sorted(zip(np.array(some)[found.of].tolist(), found.numbers.tolist(), strict=True))


@examples(150)
@given(st.lists(st.dictionaries(st.integers(0, 60), st.integers(-1, 5), max_size=40), max_size=30))
def test_numbers_that_move_between_bags_are_found_where_they_are(steps: list[dict[int, int]]) -> None:
    bags, held = Bags(), dict[int, int]()
    for step in steps:
        leave = [(held[number], number) for number in step if number in held]
        enter = [(bag, number) for number, bag in step.items() if bag >= 0]
        bags.remove(*np.array(leave, np.int64).reshape(-1, 2).T)
        bags.add(*np.array(enter, np.int64).reshape(-1, 2).T)
        held = {n: bag for n, bag in (held | step).items() if bag >= 0}
        assert contents(bags, [0, 1, 2, 3, 4, 5, 9, NOWHERE]) == sorted((bag, n) for n, bag in held.items())
        assert bags.count(np.array([3, 9, NOWHERE])).tolist() == [sum(b == 3 for b in held.values()), 0, 0]
        assert bags._held == bags._room.sum()


def test_memory_follows_what_bags_hold_and_not_what_they_have_held() -> None:
    bags, rng = Bags(), np.random.default_rng(1)
    for _ in range(200):
        numbers = rng.permutation(1000)[:500]
        where = rng.integers(0, 40, 500)
        bags.add(where, numbers)
        bags.remove(where, numbers)
    assert len(bags._array) < 10_000
    assert contents(bags, list(range(40))) == []


def test_a_bag_of_many_is_looked_up_beside_bags_of_one() -> None:
    bags = Bags()
    bags.add(np.append(np.zeros(1000, np.int64), np.arange(1, 100)), np.arange(1099))
    assert contents(bags, [0, 50]) == [*((0, n) for n in range(1000)), (50, 1049)]
