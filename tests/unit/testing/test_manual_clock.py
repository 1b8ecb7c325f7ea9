from __future__ import annotations

from datetime import UTC, datetime

import pytest

from headwater.errors import UsageError
from headwater.testing.manual_clock import ManualClock


def test_a_clock_goes_on_as_it_is_told_and_never_back() -> None:
    clock = ManualClock()
    before = clock()
    clock.advance("1 second")
    assert clock() == before + 1_000_000
    clock.advance_to(datetime(2026, 1, 2, tzinfo=UTC))
    assert clock.time == datetime(2026, 1, 2, tzinfo=UTC)
    with pytest.raises(UsageError, match="back"):
        clock.advance_to(datetime(2026, 1, 1, tzinfo=UTC))
