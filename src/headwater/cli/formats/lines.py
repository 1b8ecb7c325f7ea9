"""Whole records out of a stream of bytes: lines, or CSV records, which may span several.

Invariant: a record is passed on as soon as its end has arrived, so a slow pipe never waits for a
full chunk; a fast one comes in large chunks. At most one chunk and one record are in memory.
"""

from __future__ import annotations

import select
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from headwater.errors import RecordTooLarge, RowError

CHUNK = 1 << 20
LONGEST = 16 << 20
"""Bytes that one record may have as text; a record of the log is far smaller."""


@dataclass(frozen=True)
class RecordBlock:
    """Records that arrived together, and the line on which each of them begins."""

    values: list[bytes]
    lines: list[int]
    size: int
    """Bytes that were read for it."""


class BadLine(Exception):
    """The record that begins on ``line`` cannot be used, because of ``reason``."""

    def __init__(self, line: int, reason: RowError):
        super().__init__(reason.message)
        self.line = line
        self.reason = reason


def chunks(stream: BinaryIO, *, quoted: bool = False) -> Iterator[RecordBlock]:
    """Cut a stream into records at newlines, with ``quoted`` only at those outside of quotes.

    Blank lines are left out but counted.
    """
    line, rest = 1, b""
    for data in _arrivals(stream):
        records, rest = _cut(rest + data, quoted)
        yield _chunk(records, line, len(data))
        line += sum(record.count(b"\n") + 1 for record in records)
        if len(rest) > LONGEST:
            raise BadLine(line, RecordTooLarge(f"a record has more than {LONGEST >> 20} MB of text"))
    if rest:
        yield _chunk([rest], line, 0)


def _chunk(records: list[bytes], first: int, size: int) -> RecordBlock:
    values, lines = [], []
    for record in records:
        if record.strip():
            values.append(record)
            lines.append(first)
        first += record.count(b"\n") + 1
    return RecordBlock(values, lines, size)


def _cut(data: bytes, quoted: bool) -> tuple[list[bytes], bytes]:
    """Return the whole records, and the beginning of the next one."""
    *pieces, rest = data.split(b"\n")
    if not quoted or b'"' not in data:
        return pieces, rest
    records, open_ = _join_quoted(pieces)
    return records, b"\n".join([*open_, rest])


def _join_quoted(pieces: Iterable[bytes]) -> tuple[list[bytes], list[bytes]]:
    """Join pieces whose newline is inside quotes: there, an odd number of quotes came before."""
    records: list[bytes] = []
    open_: list[bytes] = []
    inside = False
    for piece in pieces:
        open_.append(piece)
        inside ^= piece.count(b'"') % 2 == 1
        if not inside:
            records.append(b"\n".join(open_))
            open_ = []
    return records, open_


def _arrivals(stream: BinaryIO) -> Iterator[bytes]:
    """Yield what has arrived, in chunks as large as can be had without waiting."""
    raw: BinaryIO = getattr(stream, "raw", stream)
    first, ended = True, False
    while not ended:
        parts, size = [], 0
        while not ended and (size == 0 or (size < CHUNK and _ready(raw))):
            data = _read(raw, CHUNK - size)
            ended = not data  # asked once only: a terminal would go on after its Ctrl-D
            parts.append(data)
            size += len(data)
        if size:
            whole = b"".join(parts)
            yield whole.removeprefix(b"\xef\xbb\xbf") if first else whole  # a byte order mark
        first = False


def _read(raw: BinaryIO, size: int) -> bytes:
    """Read what is there, waiting for at least one byte; nothing means the end."""
    while True:
        data = raw.read(size)
        if data is not None:
            return data
        select.select([raw], [], [])  # a parent process has made the pipe non-blocking


def _ready(raw: BinaryIO) -> bool:
    try:
        return bool(select.select([raw], [], [], 0)[0])
    except (OSError, ValueError, TypeError):
        return False  # not a file of the operating system
