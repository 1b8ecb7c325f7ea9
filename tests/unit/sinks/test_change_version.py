"""The version of a row: by batch, then by runner."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import UsageError
from headwater.sinks.change_version import change_version, is_of_batch, rebuild_of

CHANGE = st.tuples(st.integers(1, 256), st.integers(0, 1 << 32), st.integers(1, (1 << 12) - 1))


def version(change: tuple[int, int, int]) -> int:
    rebuild, batch, epoch = change
    return change_version(batch, epoch, rebuild)


@given(CHANGE, CHANGE)
def test_versions_are_ordered_as_rebuilds_then_batches_and_then_runners(
    one: tuple[int, int, int], other: tuple[int, int, int]
) -> None:
    assert (one < other) == (version(one) < version(other))
    assert rebuild_of(version(one)) == one[0]
    assert is_of_batch(version(one), other[1], other[0]) == (one[:2] <= other[:2])


def test_versions_are_numbers_that_json_and_lua_have() -> None:
    assert change_version(0, 1) > 0
    assert change_version((1 << 33) - 3, 1 << 40, 256) < 1 << 53
    with pytest.raises(UsageError, match="too large"):
        change_version(1, 1, 257)
    with pytest.raises(UsageError, match="too large"):
        change_version(1 << 33, 1)
