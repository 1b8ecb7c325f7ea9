"""Messages of ``pgoutput`` made by hand, and read one at a time, the slow and obvious way."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from headwater.capture.postgres.fetching import Messages
from headwater.capture.postgres.tuples import BINARY, NULL, PADDING, TEXT, Buffer, Cells

Cell = bytes | None
UNCHANGED = b"\0unchanged"
"""Stands for a cell that is not sent."""


def cells(values: Sequence[Cell], form: int = BINARY) -> Cells:
    """Return a column of values, with something between them."""
    start, data = [], b""
    for value in values:
        data += b"?"
        start.append(len(data))
        data += value or b""
    length = np.array([len(value or b"") for value in values], np.int64)
    kind = np.array([NULL if value is None else form for value in values], np.uint8)
    return Cells(Buffer(data + PADDING), kind, np.array(start, np.int64), length)


def text_cells(values: Sequence[str | None]) -> Cells:
    """Return a column of texts."""
    return cells([None if value is None else value.encode() for value in values], TEXT)


def row(values: Sequence[Cell], form: bytes = b"b") -> bytes:
    """Return a tuple."""
    return struct.pack(">H", len(values)) + b"".join(_cell(value, form) for value in values)


def _cell(value: Cell, form: bytes) -> bytes:
    if value is None:
        return b"n"
    return b"u" if value is UNCHANGED else form + struct.pack(">I", len(value)) + value


def wrapped(payload: bytes) -> bytes:
    """Return what the server sends for a message of the plugin."""
    return b"w" + struct.pack(">QQQ", 1, 2, 3) + payload


def keepalive(end: int, reply: bool = False) -> bytes:
    return b"k" + struct.pack(">QQB", end, 0, reply)


def begin(number: int, final: int, committed: int = 0) -> bytes:
    return wrapped(b"B" + struct.pack(">QqI", final, committed, number))


def commit(final: int, end: int, committed: int = 0) -> bytes:
    return wrapped(b"C" + struct.pack(">BQQq", 0, final, end, committed))


def relation(
    number: int, columns: Sequence[tuple[str, int, bool]], name: str = "t", identity: str = "d"
) -> bytes:
    head = struct.pack(">I", number) + b"public\0" + name.encode() + b"\0" + identity.encode()
    parts = [
        bytes([key]) + each.encode() + b"\0" + struct.pack(">Ii", kind, -1) for each, kind, key in columns
    ]
    return wrapped(b"R" + head + struct.pack(">H", len(columns)) + b"".join(parts))


def insert(number: int, new: Sequence[Cell]) -> bytes:
    return wrapped(b"I" + struct.pack(">I", number) + b"N" + row(new))


def update(number: int, new: Sequence[Cell], old: Sequence[Cell] | None = None, tag: bytes = b"K") -> bytes:
    before = tag + row(old) if old is not None else b""
    return wrapped(b"U" + struct.pack(">I", number) + before + b"N" + row(new))


def delete(number: int, old: Sequence[Cell], tag: bytes = b"K") -> bytes:
    return wrapped(b"D" + struct.pack(">I", number) + tag + row(old))


def truncate(*numbers: int) -> bytes:
    return wrapped(b"T" + struct.pack(f">IB{len(numbers)}I", len(numbers), 0, *numbers))


def fetched(messages: Sequence[bytes]) -> Messages:
    return Messages.of(list(messages))


@dataclass(frozen=True)
class Read:
    """A change, as the slow reader has it."""

    kind: str
    relation: int
    transaction: int
    index: int
    old: tuple[Cell, ...] | None = None
    new: tuple[Cell, ...] | None = None


def slowly(messages: Sequence[bytes]) -> Iterator[Read]:
    """Read messages one at a time."""
    number, index = -1, 0
    for message in messages:
        body = message[25:]
        kind = body[:1].decode() if message[:1] == b"w" else ""
        if kind == "B":
            (number,), index = struct.unpack_from(">I", body, 17), 0
        elif kind in tuple("IUD"):
            (table,) = struct.unpack_from(">I", body, 1)
            yield Read(kind, table, number, index, *_tuples(body, 5))
            index += 1
        elif kind == "T":
            (count,) = struct.unpack_from(">I", body, 1)
            for table in struct.unpack_from(f">{count}I", body, 6):
                yield Read(kind, table, number, index)
            index += 1


def _tuples(body: bytes, at: int) -> tuple[tuple[Cell, ...] | None, tuple[Cell, ...] | None]:
    found: dict[bytes, tuple[Cell, ...]] = {}
    while at < len(body):
        tag, at = body[at : at + 1], at + 1
        (count,) = struct.unpack_from(">H", body, at)
        at, values = at + 2, []
        for _ in range(count):
            kind, at = body[at : at + 1], at + 1
            if kind in (b"n", b"u"):
                values.append(None if kind == b"n" else UNCHANGED)
                continue
            (length,) = struct.unpack_from(">I", body, at)
            values.append(body[at + 4 : at + 4 + length])
            at += 4 + length
        found[b"N" if tag == b"N" else b"O"] = tuple(values)
    return found.get(b"O"), found.get(b"N")
