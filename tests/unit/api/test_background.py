"""Work in a thread of its own."""

from __future__ import annotations

import time

import pytest

from headwater.api.background import Background, apart


def test_work_apart_returns_or_raises_as_if_it_were_here() -> None:
    assert apart(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        apart(lambda: 1 // 0)
    assert not Background(lambda: time.sleep(5)).ended(0.01)
