"""The version of a row: by batch, then by runner."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import UsageError
from headwater.sinks.change_version import change_version

BATCH, EPOCH = st.integers(0, 1 << 32), st.integers(1, (1 << 20) - 1)


@given(st.tuples(BATCH, EPOCH), st.tuples(BATCH, EPOCH))
def test_versions_are_ordered_as_batches_and_then_as_runners(
    one: tuple[int, int], other: tuple[int, int]
) -> None:
    assert (one < other) == (change_version(*one) < change_version(*other))


def test_versions_are_numbers_that_json_and_lua_have() -> None:
    assert change_version(0, 1) > 0
    assert change_version((1 << 33) - 3, 1 << 40) < 1 << 53
    with pytest.raises(UsageError, match="too large"):
        change_version(1 << 33, 1)
