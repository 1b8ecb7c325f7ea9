"""Work in a thread of its own, so that the main thread is there for Ctrl-C and for the screen.

A call into Spark's Java cannot be interrupted where it waits, and pyspark, if it is started in the
main thread, takes Ctrl-C for itself. Invariant: an interrupted wait waits for work that can be stopped, so
that nothing goes on behind the caller's back, and for no other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from headwater.closing import Closing

T = TypeVar("T")
STOP_SECONDS = 0.2
"""How long work that is being stopped is waited for before it is stopped again."""


class Background(Generic[T]):
    """A call that goes on elsewhere."""

    def __init__(self, call: Callable[[], T]):
        self._call = call
        self._ended = threading.Event()
        self._result: list[T] = []
        self._error: BaseException | None = None
        threading.Thread(target=self._work, daemon=True, name="work").start()

    def _work(self) -> None:
        try:
            self._result.append(self._call())
        except BaseException as error:
            self._error = error
        self._ended.set()

    def ended(self, wait: float) -> bool:
        """Tell whether it has ended, after some seconds at the most."""
        return self._ended.wait(wait)

    def result(self) -> T:
        """Wait, and return what the call returned or raise what it raised."""
        self._ended.wait()
        if self._error is not None:
            raise self._error
        return self._result[0]


class StoppableWork(Closing):
    """Work that goes on elsewhere until it is told to stop; ``run`` is given the event that tells it."""

    def __init__(self, run: Callable[[threading.Event], None]):
        self._stop = threading.Event()
        self._thread = Background(partial(run, self._stop))

    def ended(self, wait: float = 0.0) -> bool:
        """Tell whether it has ended, after some seconds at the most."""
        return self._thread.ended(wait)

    def result(self) -> None:
        """Wait for its end, and raise why it failed, if it did."""
        self._thread.result()

    def close(self) -> None:
        """Stop it and wait for that."""
        self._stop.set()
        while not self.ended(1.0):  # a wait without end could not be interrupted
            pass


def run_in_thread(call: Callable[[], T], stop: Callable[[], bool] = lambda: False) -> T:
    """Return what a call returns that is made in a thread of its own.

    When the wait for it is interrupted, ``stop`` is called until the call has ended, or until it returns
    False: then there is nothing to wait for.
    """
    work = Background(call)
    try:
        return work.result()
    except BaseException:
        while not work.ended(0) and stop():
            work.ended(STOP_SECONDS)
        raise
