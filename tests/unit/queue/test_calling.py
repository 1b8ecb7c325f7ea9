"""Functions and objects that are called with messages, awaited or not."""

from __future__ import annotations

from typing import Any, cast

import pytest

from headwater.log import Message
from headwater.queue.calling import MessageCaller, is_async

MESSAGE = cast(Message, "a message")


class Sender:
    """An object whose call is to be awaited."""

    async def __call__(self, message: Message) -> None:
        seen.append(message)


seen: list[Any] = []


def test_a_call_returns_when_the_function_has() -> None:
    seen.clear()
    with MessageCaller(seen.append) as call:
        call(MESSAGE)
    with MessageCaller(Sender()) as call:
        call(MESSAGE)
    assert seen == [MESSAGE, MESSAGE]


def test_what_the_function_raises_reaches_the_caller() -> None:
    async def fail(message: Message) -> None:
        raise ValueError("no")

    with MessageCaller(fail) as call, pytest.raises(ValueError, match="no"):
        call(MESSAGE)


def test_it_is_known_what_is_to_be_awaited() -> None:
    assert is_async(Sender())
    assert not is_async(print)
