"""Whole lines out of bytes that arrive in pieces, at newlines or by the octet counts of syslog.

Invariant: what is held back is at most one line, of which no more than the limit and one byte is kept: a
longer line comes out cut to that length, so that whoever gets it can tell, and what follows is whole.
"""

from __future__ import annotations

from typing import Protocol

from headwater.record import MAX_BYTES

LONGEST = MAX_BYTES
"""Bytes that a line may have: a record has no more."""
_COUNT_DIGITS = 7


class Splitter(Protocol):
    """Cuts what arrives into lines."""

    @property
    def held(self) -> int:
        """Bytes that have arrived of a line that has not ended, kept or not."""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that end in what has arrived."""

    def rest(self) -> list[bytes]:
        """Return what has arrived of the last line, if anything: nothing follows."""


class NewlineSplitter:
    """Cuts at newlines; a carriage return before one belongs to it.

    >>> splitter = NewlineSplitter()
    >>> splitter.feed(b"one" + bytes([13, 10]) + b"two")
    [b'one']
    >>> splitter.rest()
    [b'two']
    """

    def __init__(self, longest: int = LONGEST):
        self._longest = longest
        self._kept = b""
        self.held = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that end in what has arrived."""
        first, newline, more = data.partition(b"\n")
        if not newline:
            self._hold(data)
            return []
        self._hold(first)
        begun = self._kept
        *lines, last = more.split(b"\n")
        self._kept, self.held = b"", 0
        self._hold(last)
        return [self._cut(line) for line in (begun, *lines)]

    def rest(self) -> list[bytes]:
        """Return what has arrived of the last line, if anything."""
        begun, self._kept, self.held = self._kept, b"", 0
        return [self._cut(begun)] if begun else []

    def _hold(self, data: bytes) -> None:
        self.held += len(data)
        room = self._longest + 2 - len(self._kept)  # a carriage return may have to go yet
        self._kept += data[: max(room, 0)]

    def _cut(self, line: bytes) -> bytes:
        return line.removesuffix(b"\r")[: self._longest + 1]


class SyslogSplitter:
    """Cuts messages of RFC 6587: ``LENGTH SPACE MESSAGE``, or a line, whichever each begins with."""

    def __init__(self, longest: int = LONGEST):
        self._longest = longest
        self._line = NewlineSplitter(longest)
        self._kept = b""
        self._skipped = 0
        """Bytes of a message that is too long which have yet to arrive, and are passed over."""

    @property
    def held(self) -> int:
        """Bytes that have arrived of a message that has not ended."""
        return len(self._kept) + self._line.held

    def feed(self, data: bytes) -> list[bytes]:
        """Return the messages that end in what has arrived."""
        self._kept += data
        messages: list[bytes] = []
        while self._kept:  # one by one: where a message begins is known when the one before has been read
            before = len(self._kept), self._skipped
            messages += self._step()
            if (len(self._kept), self._skipped) == before:
                break
        return messages

    def rest(self) -> list[bytes]:
        """Return what has arrived of the last line, if it is one; a message that was counted is not whole."""
        self._kept = b""
        return self._line.rest()

    def _step(self) -> list[bytes]:
        if self._skipped:
            gone = min(self._skipped, len(self._kept))
            self._kept, self._skipped = self._kept[gone:], self._skipped - gone
            return []
        if self._line.held or not self._kept[:1].isdigit():
            return self._step_line()
        return self._step_counted()

    def _step_line(self) -> list[bytes]:
        line, newline, after = self._kept.partition(b"\n")
        self._kept = after
        return self._line.feed(line + newline)

    def _step_counted(self) -> list[bytes]:
        count, space, _ = self._kept[: _COUNT_DIGITS + 1].partition(b" ")
        if not space:
            digits = count.isdigit() and len(self._kept) <= _COUNT_DIGITS
            return (
                [] if digits else self._step_line()
            )  # it may be a count yet, or it is a line that begins so
        if not count.isdigit():
            return self._step_line()
        size, start = int(count), len(count) + 1
        if size > self._longest:
            cut = self._kept[start : start + self._longest + 1]
            if len(cut) <= self._longest:
                return []
            self._kept, self._skipped = self._kept[start + len(cut) :], size - len(cut)
            return [cut]
        if len(self._kept) < start + size:
            return []
        message, self._kept = self._kept[start : start + size], self._kept[start + size :]
        return [message.removesuffix(b"\n")]
