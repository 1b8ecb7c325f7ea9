"""Work shared among the cores: cut evenly, done in a pool that every process has of its own."""

from __future__ import annotations

import os
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.log import parallel
from headwater.log.parallel import CORES, done, pieces, submit


@given(st.integers(0, 10**6), st.integers(1, 10**4), st.integers(1, 10**5))
def test_pieces_cover_a_range_once_evenly_and_none_is_too_long(count: int, least: int, most: int) -> None:
    found = pieces(count, least, most)
    assert (found[0][0], found[-1][1]) == (0, count)
    assert all(before[1] == after[0] for before, after in pairwise(found))
    sizes = [stop - start for start, stop in found]
    assert max(sizes) <= most
    assert max(sizes) - min(sizes) <= 1


@given(st.integers(0, 10**6), st.integers(1, 10**4))
def test_without_a_longest_there_is_a_piece_for_each_core_that_has_enough_to_do(
    count: int, least: int
) -> None:
    found = pieces(count, least)
    assert len(found) == max(1, min(CORES, count // least))
    assert len(found) == 1 or min(stop - start for start, stop in found) >= least


def test_results_and_errors_come_back_from_the_pool() -> None:
    assert [each.result() for each in [submit(abs, -n) for n in range(20)]] == list(range(20))
    assert done(7).result(timeout=0) == 7
    with pytest.raises(ValueError, match="invalid literal"):
        submit(int, "seven").result()


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_child_has_a_pool_of_its_own() -> None:
    submit(abs, -1).result()  # the parent's pool has threads, which a child has not
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if parallel.submit(abs, -3).result(timeout=60) == 3 else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
