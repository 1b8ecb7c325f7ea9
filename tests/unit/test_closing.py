"""What is used in a ``with`` block is closed at its end, whatever happened in it."""

from __future__ import annotations

from typing import Any, cast

import pytest

from headwater.closing import Closing


class Door(Closing):
    """Counts how often it is closed."""

    closed = 0

    def close(self) -> None:
        self.closed += 1


def test_the_block_has_the_thing_itself_open_and_leaves_it_closed() -> None:
    door = Door()
    with door as same:
        assert same is door
        assert door.closed == 0
    assert door.closed == 1


def test_an_error_in_the_block_closes_it_and_goes_on() -> None:
    door = Door()
    with pytest.raises(LookupError, match="inside"), door:
        raise LookupError("inside")
    assert door.closed == 1


def test_an_error_of_closing_is_not_swallowed() -> None:
    class Stuck(Closing):
        def close(self) -> None:
            raise OSError("stuck")

    with pytest.raises(OSError, match="stuck"), Stuck():
        pass


def test_what_cannot_be_closed_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="close"):
        cast(Any, Closing)()
