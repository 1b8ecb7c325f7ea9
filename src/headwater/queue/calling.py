"""Calls a user's function with a message, whether it is to be awaited or not.

Async functions run in one event loop, in a thread of its own; who calls waits in its thread. Invariant: a
call returns when the function has, and raises what it raised, also what would end the event loop.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from typing import Any

from headwater.closing import Closing
from headwater.log import Message

Handler = Callable[[Message], Any]
END_SECONDS = 1.0
"""How long an event loop is waited for that is to end."""


class MessageCaller(Closing):
    """Calls one function, from many threads."""

    def __init__(self, handler: Handler):
        self._handler = handler
        self._loop: asyncio.AbstractEventLoop | None = None
        if is_async(handler):
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="headwater-work", daemon=True)
            self._thread.start()

    def __call__(self, message: Message) -> None:
        """Call the function and wait for it."""
        if self._loop is None:
            self._handler(message)
        else:
            ended = asyncio.run_coroutine_threadsafe(self._await(message), self._loop).result()
            if ended is not None:
                raise ended

    def close(self) -> None:
        """End the event loop; one that a function blocks ends with the process."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(END_SECONDS)
            if not self._thread.is_alive():
                self._loop.close()
            self._loop = None

    async def _await(self, message: Message) -> BaseException | None:
        """Await the function; return what must not be raised in an event loop, for it would end it."""
        try:
            await self._handler(message)
        except (SystemExit, KeyboardInterrupt) as error:
            return error
        return None


def is_async(handler: Handler) -> bool:
    """Tell whether a function, or an object that can be called, is to be awaited."""
    call = getattr(handler, "__call__", None)  # noqa: B004  # of an object, not of its class
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(call)
