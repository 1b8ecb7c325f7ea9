"""What stands before a value whose schema is in a registry: a zero byte and the schema's id in four.

It may stand in a header of the record instead, where a one and sixteen bytes are the schema's global id.

Protobuf has the path to the message's type in the schema after that: how many numbers, then the numbers,
each as a zigzag varint; a single zero stands for the first message. Invariant: nothing is taken for a
prefix that is none.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from headwater.errors import RowError

PREFIX = 5
VALUE_HEADER, KEY_HEADER = "__value_schema_id", "__key_schema_id"
_GLOBAL = 17
_MOST_INDEXES = 100
_FIRST = (0,)


class Prefixed(NamedTuple):
    """A value without its prefix, and the id of its schema: a number, or a global one as text."""

    id: int | str
    body: bytes


class HeadedValue(bytes):
    """A value behind what a header of its record says of its schema."""


def prefix(value: bytes) -> bytes:
    """Return what stands before a value; only a header says of a schema by its global id."""
    is_global = isinstance(value, HeadedValue) and value[:1] == b"\1"
    return bytes(value[: _GLOBAL if is_global else PREFIX])


def split(value: bytes) -> Prefixed:
    """Return a value without its prefix, or refuse it.

    >>> split(bytes([0, 0, 0, 1, 2]) + b"rest")
    Prefixed(id=258, body=b'rest')
    """
    begin = prefix(value)
    if len(begin) == _GLOBAL:
        return Prefixed(str(UUID(bytes=begin[1:])), value[_GLOBAL:])
    if len(value) < PREFIX or value[0] != 0:
        raise RowError(
            "value does not begin with the id of its schema",
            detail=f"got {bytes(value[:8])!r}",
            hint="is it of another format, or written without a schema registry?",
        )
    return Prefixed(int.from_bytes(value[1:PREFIX], "big"), value[PREFIX:])


def message_path(body: bytes) -> tuple[tuple[int, ...], bytes]:
    """Return which message of its schema a Protobuf value is, and the message itself.

    >>> message_path(bytes([0]) + b"rest"), message_path(bytes([4, 2, 0]) + b"rest")
    (((0,), b'rest'), ((1, 0), b'rest'))
    """
    if body[:1] == b"\0":
        return _FIRST, body[1:]
    count, at = _number(body, 0)
    if not 0 < count <= _MOST_INDEXES:
        raise ValueError(f"it has {count} message indexes")
    path = []
    for _ in range(count):
        index, at = _number(body, at)
        path.append(index)
    return tuple(path), body[at:]


def _number(body: bytes, at: int) -> tuple[int, int]:
    """Return a zigzag varint and where it ends."""
    number = shift = 0
    while True:
        if at >= len(body) or shift > 28:
            raise ValueError("its message indexes are cut off")
        number |= (body[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if not body[at - 1] & 0x80:
            return (number >> 1) ^ -(number & 1), at
