"""Containers here have several runs in memory, though tests have few rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headwater.operators.memory.sorted_runs import LIMITS


@pytest.fixture(autouse=True, scope="module")
def several_runs_in_memory() -> Iterator[None]:
    few, LIMITS.few = LIMITS.few, 0
    yield
    LIMITS.few = few
