"""Where windows lie, against a look at all of them."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.windows.grid import Grid
from soaking import examples

AT = st.lists(st.integers(-40, 40), min_size=1, max_size=8)


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    hop = draw(st.integers(1, 8))
    size = draw(st.integers(hop, 20))
    return Grid(size, hop, gcd(size, hop), draw(st.integers(-5, 9)))


@dataclass(frozen=True)
class ByHand:
    """All windows of some time, and the panes that their edges cut it into."""

    grid: Grid

    @property
    def starts(self) -> list[int]:
        return [n * self.grid.hop + self.grid.offset for n in range(-150, 150)]

    def of(self, at: int) -> list[int]:
        return [start for start in self.starts if start <= at < start + self.grid.size]


@examples(40)
@given(grids(), AT)
def test_a_time_is_in_the_windows_from_the_first_to_the_last(grid: Grid, at: list[int]) -> None:
    hand = [ByHand(grid).of(time) for time in at]
    assert grid.first(np.array(at)).tolist() == [windows[0] for windows in hand]
    assert grid.last(np.array(at)).tolist() == [windows[-1] for windows in hand]
    assert [grid.first(time) for time in at] == [windows[0] for windows in hand]


@examples(40)
@given(grids(), AT)
def test_the_times_of_a_pane_are_in_the_same_windows(grid: Grid, at: list[int]) -> None:
    panes = grid.pane(np.array(at))
    assert ((panes <= at) & (at < panes + grid.width)).all()
    for time, pane in zip(at, panes.tolist(), strict=True):
        assert ByHand(grid).of(time) == ByHand(grid).of(pane) == ByHand(grid).of(pane + grid.width - 1)


@examples(40)
@given(grids(), AT)
def test_every_window_of_a_pane_is_told_with_the_place_of_the_pane(grid: Grid, at: list[int]) -> None:
    panes = grid.pane(np.array(at))
    told = zip(*(part.tolist() for part in grid.windows(panes)), strict=True)
    hand = [(place, start) for place, pane in enumerate(panes) for start in ByHand(grid).of(pane)]
    assert list(told) == hand


@examples(40)
@given(grids(), AT)
def test_panes_that_share_a_window_are_near(grid: Grid, at: list[int]) -> None:
    panes = np.unique(grid.pane(np.array(at)))
    told = set(zip(*(part.tolist() for part in grid.near(panes)), strict=True))
    for place, pane in enumerate(panes.tolist()):
        for other in panes.tolist():
            if set(ByHand(grid).of(pane)) & set(ByHand(grid).of(other)):
                assert (place, other) in told


@examples(40)
@given(grids(), st.integers(-40, 40))
def test_the_first_open_window_is_the_first_that_ends_after_the_clock(grid: Grid, clock: int) -> None:
    assert grid.open(clock) == min(s for s in ByHand(grid).starts if s + grid.size > clock)
