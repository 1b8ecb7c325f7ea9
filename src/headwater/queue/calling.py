"""Calls a user's function with a message, whether it is to be awaited or not.

Async functions run in one event loop, in a thread of its own; who calls waits in its thread. Invariant: a
call returns when the function has, and raises what it raised.
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
            asyncio.run_coroutine_threadsafe(self._handler(message), self._loop).result()

    def close(self) -> None:
        """End the event loop."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._loop = None


def is_async(handler: Handler) -> bool:
    """Tell whether a function, or an object that can be called, is to be awaited."""
    call = getattr(handler, "__call__", None)  # noqa: B004  # of an object, not of its class
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(call)
