"""Arithmetic of times that does not run over."""

from __future__ import annotations

import numpy as np

from headwater.operators.event_time import FOREVER, NEVER, behind, moved


def test_times_are_moved_up_to_the_ends_and_not_beyond() -> None:
    at = np.array([NEVER, 0, FOREVER], np.int64)
    assert moved(at, 5).tolist() == [NEVER + 5, 5, FOREVER]
    assert moved(at, -5).tolist() == [NEVER, -5, FOREVER - 5]


def test_a_watermark_that_knows_no_time_still_knows_none_a_while_before() -> None:
    assert behind(NEVER, 10) == NEVER
    assert behind(100, 10) == 90
