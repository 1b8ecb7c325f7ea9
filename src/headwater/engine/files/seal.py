"""A seal at the end of what is put into a store: how many bytes there are before it, and their checksum.

Answers that are cut, bodies that are mixed up and bits that have changed are noticed by whoever reads. The
seal is a line of text, so that a list in a store can be read by people, too.

Invariant: bytes that are returned are those that were sealed, all of them.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import BinaryIO

BLOCK_BYTES = 8 << 20
"""How much is read, summed and written at a time."""


class BrokenSeal(Exception):
    """What was read is not what was sealed, or not all of it."""


def seal(checksum: int, size: int) -> bytes:
    """Return the seal of so many bytes.

    >>> seal(zlib.crc32(b"state"), 5)
    b'\\nheadwater a393d2fb 0000000000000005\\n'
    """
    return b"\nheadwater %08x %016x\n" % (checksum, size)


SEAL_BYTES = len(seal(0, 0))


def sealed(data: bytes) -> bytes:
    """Return bytes with their seal."""
    return data + seal(zlib.crc32(data), len(data))


def unsealed(data: bytes) -> bytes:
    """Return bytes without their seal, if it is theirs."""
    body, found = data[:-SEAL_BYTES], data[-SEAL_BYTES:]
    _check(found, zlib.crc32(body), len(body))
    return body


def copy_sealed(source: BinaryIO, write: Callable[[bytes], object]) -> None:
    """Write all that can be read, and its seal."""
    checksum = size = 0
    while block := source.read(BLOCK_BYTES):
        checksum, size = zlib.crc32(block, checksum), size + len(block)
        write(block)
    write(seal(checksum, size))


def copy_unsealed(read: Callable[[int], bytes], sink: BinaryIO) -> None:
    """Write all that can be read before its seal, if that is its own."""
    checksum, size, held = 0, 0, b""
    while block := read(BLOCK_BYTES):
        held += block
        body, held = held[:-SEAL_BYTES], held[-SEAL_BYTES:]
        checksum, size = zlib.crc32(body, checksum), size + len(body)
        sink.write(body)
    _check(held, checksum, size)


def _check(found: bytes, checksum: int, size: int) -> None:
    if found != seal(checksum, size):
        raise BrokenSeal(f"{size + len(found)} bytes have no seal of theirs at their end")
