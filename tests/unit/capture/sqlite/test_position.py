"""Positions in an outbox."""

from __future__ import annotations

import pytest

from headwater.capture.sqlite.position import OutboxPosition
from headwater.errors import SourceRefused


def test_a_position_is_read_back_from_its_text() -> None:
    position = OutboxPosition("5c19", 18, 1_794_936_708_363)
    assert OutboxPosition.parse(str(position)) == position


@pytest.mark.parametrize("text", ["", "0/16B3748", "a:b:c", "a:1", "a:1:2:3"])
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(SourceRefused, match="is no position"):
        OutboxPosition.parse(text)
