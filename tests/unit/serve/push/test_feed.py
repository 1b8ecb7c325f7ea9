"""Positions of several partitions, compared and joined."""

from __future__ import annotations

from headwater.serve.push.feed import farther, passed


def test_a_position_passes_another_in_every_partition_or_not_at_all() -> None:
    assert passed({0: 2, 1: 1}, {0: 2, 1: 0}) and passed({0: 2}, {0: 2, 1: 0})
    assert not passed({0: 9, 1: 0}, {0: 2, 1: 1}) and not passed({0: 9}, {1: 1})


def test_the_farther_of_two_positions_is_taken_partition_by_partition() -> None:
    assert farther({0: 2, 1: 5}, {0: 3, 2: 1}) == {0: 3, 1: 5, 2: 1}
