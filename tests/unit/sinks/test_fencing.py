"""What a runner is told that another has replaced."""

from __future__ import annotations

from headwater.errors import Fenced
from headwater.sinks.fencing import dropped, taken_over


def test_a_replaced_runner_is_told_what_was_taken_over_and_to_end() -> None:
    error = taken_over('cache "people:"')
    assert isinstance(error, Fenced)
    assert error.message == 'another runner has taken over cache "people:"'
    assert "let this runner end" in (error.hint or "")


def test_a_version_that_is_gone_is_named() -> None:
    assert dropped('view "stock"', 2).message == 'version 2 of view "stock" has been dropped'
