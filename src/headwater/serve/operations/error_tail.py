"""The last that a child process prints as errors: for the server's own log, where it ends without an answer.

Invariant: whatever a child prints is read, so that it is never held up by that, and at most ``TAIL_BYTES`` of
it are kept.
"""

from __future__ import annotations

import os
import threading
from types import TracebackType

TAIL_BYTES = 4 << 10
_READ_BYTES = 64 << 10
_END_SECONDS = 1.0


class ErrorTail:
    """A pipe whose ``input`` a child is started with, inside of a ``with`` block; then it is read.

    It is read until all who have it are gone: what a child has started may outlive it.
    """

    def __init__(self) -> None:
        self._output, self.input = os.pipe()
        self._kept = b""
        self._thread = threading.Thread(target=self._read, name="operation-errors", daemon=True)

    def __enter__(self) -> ErrorTail:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.input)

    def text(self) -> str:
        """Return the end of what was printed, when the child has ended."""
        self._thread.join(_END_SECONDS)
        return self._kept.decode(errors="replace").strip()

    def _read(self) -> None:
        with open(self._output, "rb", buffering=0) as output:
            while data := output.read(_READ_BYTES):
                self._kept = (self._kept + data)[-TAIL_BYTES:]
