"""Many datagrams at once: what a UDP socket has, in one call of the system, and what the kernel dropped.

``recvmmsg`` fills a buffer of slots, of which only the pages that were ever used take memory. Where a system
has no ``recvmmsg``, datagrams are received one by one into the same slots. Invariant: a datagram is handed
over whole, and what the kernel had no room for is counted where the system counts it.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import select
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from headwater.closing import Closing

SLOT = 1 << 16
"""Bytes of a slot: no datagram is larger."""
AT_ONCE = 1024
_WAIT_NOT = getattr(socket, "MSG_DONTWAIT", 0x40)


class _Span(ctypes.Structure):
    """``struct iovec``."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class _Header(ctypes.Structure):
    """``struct msghdr``."""

    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint32),
        ("spans", ctypes.POINTER(_Span)),
        ("span_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )


class _Message(ctypes.Structure):
    """``struct mmsghdr``."""

    _fields_ = (("header", _Header), ("received", ctypes.c_uint32))


class DatagramReader(Closing):
    """Takes what a UDP socket has received."""

    def __init__(self, opened: socket.socket, *, bulk: bool = True):
        self._socket, self._drops = opened, 0
        self._memory = mmap.mmap(-1, SLOT * AT_ONCE)
        self._slots = memoryview(self._memory)
        self._poll = select.poll()
        self._poll.register(opened, select.POLLIN)
        self._system = _system_call() if bulk else None
        if self._system is not None:
            self._prepare()

    def wait(self, seconds: float) -> bool:
        """Wait for a datagram, some seconds at the most; tell whether there is one."""
        return bool(self._poll.poll(seconds * 1000))

    def receive(self) -> list[memoryview]:
        """Return the datagrams that are there, without waiting; the next call overwrites them."""
        return self._receive_single() if self._system is None else self._receive_bulk()

    def new_drops(self) -> int:
        """Return how many datagrams the kernel had no room for, since it was last asked."""
        before, self._drops = self._drops, self.kernel_drops() or 0
        return self._drops - before

    def kernel_drops(self) -> int | None:
        """Return how many datagrams the kernel had no room for, since the socket is open; None if it is
        mute."""
        return _kernel_drops(os.fstat(self._socket.fileno()).st_ino)

    def close(self) -> None:
        """Close the socket; what was received stays readable as long as somebody holds it."""
        self._socket.close()

    def _prepare(self) -> None:
        first = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._spans = (_Span * AT_ONCE)(*(_Span(first + SLOT * n, SLOT) for n in range(AT_ONCE)))
        self._messages = (_Message * AT_ONCE)()
        for message, span in zip(self._messages, self._spans, strict=True):
            message.header.spans, message.header.span_count = ctypes.pointer(span), 1
        words = np.frombuffer(memoryview(self._messages).cast("B"), np.uint32).reshape(AT_ONCE, -1)
        self._lengths = words[:, _Message.received.offset // 4]

    def _receive_bulk(self) -> list[memoryview]:
        assert self._system is not None
        count = self._system(self._socket.fileno(), self._messages, AT_ONCE, _WAIT_NOT, None)
        if count <= 0:  # nothing is there; what an earlier datagram has met (ICMP) is nobody's here
            return []
        ends, slots = self._lengths[:count].tolist(), self._slots
        # A slice for each datagram, about 0.1 µs: they lie in slots, and have to be named somehow.
        spans = zip(range(0, SLOT * count, SLOT), ends, strict=True)
        return [slots[at : at + length] for at, length in spans]

    def _receive_single(self) -> list[memoryview]:
        datagrams: list[memoryview] = []
        for at in range(0, SLOT * AT_ONCE, SLOT):
            try:
                length = self._socket.recv_into(self._slots[at : at + SLOT])
            except OSError:
                break
            datagrams.append(self._slots[at : at + length])
        return datagrams


def _system_call() -> Callable[..., int] | None:
    library = ctypes.CDLL(None, use_errno=True)
    call: Any = getattr(library, "recvmmsg", None)
    if call is not None:
        call.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int, ctypes.c_void_p)
        call.restype = ctypes.c_int
    return call  # type: ignore[no-any-return]


def _kernel_drops(inode: int) -> int | None:
    """Return the last column of a socket's line, which its inode names in the tenth."""
    for table in ("/proc/net/udp", "/proc/net/udp6"):
        if Path(table).exists():
            for line in Path(table).read_text().splitlines()[1:]:
                words = line.split()
                if words[9] == str(inode):
                    return int(words[-1])
    return None
