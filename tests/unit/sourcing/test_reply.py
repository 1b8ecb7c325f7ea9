from __future__ import annotations

from headwater.log.position import Position
from headwater.sourcing.reply import Reply


def test_a_repeated_reply_equals_the_first() -> None:
    position = Position("account", {0: 3})
    assert Reply((1,), 3, position) == Reply((1,), 3, position, repeated=True)
