"""A generation of a followed file, open: as it was written, or compressed since.

A generation is known by its inode and a digest of its first bytes; compressing gives it another inode, and
keeps the time of its last change. Invariant: what ``read`` returns is what was written, whatever the file is
now; where it cannot be told whether a compressed file was read before, that is an error.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import os
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from io import BufferedIOBase
from pathlib import Path
from typing import IO

from headwater.errors import SourceRefused

PREFIX = 1024
"""First bytes by which a file is known, as far as it has been read."""
MARK = 256
"""First and last bytes by which a file that was read to its end is known, beside its inode."""
DECOMPRESSORS: dict[str, Callable[[IO[bytes]], BufferedIOBase]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".bz2": lambda file: bz2.BZ2File(file),
    ".xz": lambda file: lzma.LZMAFile(file),
}
UNREADABLE = (".zst", ".lz4", ".Z")
COMPRESSED = (*DECOMPRESSORS, *UNREADABLE)
_SECOND = 1_000_000_000


@dataclass(frozen=True)
class FileMark:
    """A generation that is done with, or was there before the work began."""

    inode: int
    size: int
    """Of how many first bytes the digest is."""
    digest: str
    length: int
    """How many bytes it had; 0 for one that is compressed."""
    tail: str
    """The digest of its last bytes."""
    changed: int
    """When it was last changed, in nanoseconds since 1970."""

    def __str__(self) -> str:
        parts = (self.inode, self.size, self.digest, self.length, self.tail, self.changed)
        return ":".join(str(part) for part in parts)

    @classmethod
    def parse(cls, text: str) -> FileMark:
        """Return what ``str`` has written."""
        inode, size, digest, length, tail, changed = text.split(":")
        return cls(int(inode), int(size), digest, int(length), tail, int(changed))


class OpenFile:
    """A generation of the file, open."""

    def __init__(self, path: Path):
        self.path = path
        self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        found = os.fstat(self._descriptor)
        if not stat.S_ISREG(found.st_mode):
            self.close()
            raise SourceRefused(f'"{path}" is not a file that can be followed', hint="name a regular file")
        self.inode = found.st_ino

    @property
    def size(self) -> int:
        """Bytes that it has now."""
        return os.fstat(self._descriptor).st_size

    @property
    def changed(self) -> int:
        """When it was last changed, in nanoseconds since 1970."""
        return os.fstat(self._descriptor).st_mtime_ns

    @property
    def empty(self) -> bool:
        """Whether nothing was written to it."""
        return not self.read(0, 1)

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes from an offset on, as many as there are."""
        return os.pread(self._descriptor, size, offset)

    def digest(self, read: int) -> str:
        """Return the digest of its first bytes, of which some were read."""
        return prefix_digest(self.read(0, min(read, PREFIX)))

    def holds(self, read: int, digest: str) -> bool:
        """Tell whether this still begins with what was read of it."""
        return self.size >= read and self.digest(read) == digest

    def mark(self) -> FileMark:
        """Return what it is known by when it is done with."""
        length = self.size
        size, begin = min(length, MARK), max(0, length - MARK)
        tail = prefix_digest(self.read(begin, length - begin))
        return FileMark(self.inode, size, self.digest(size), length, tail, self.changed)

    def is_one_of(self, marks: Iterable[FileMark]) -> bool:
        """Tell whether this is one of those that are done with; it may have got more since."""
        mine = (each for each in marks if each.inode == self.inode and each.length)
        return any(self.holds(each.size, each.digest) for each in mine)

    def close(self) -> None:
        """Close it; closing it again does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1


class CompressedFile(OpenFile):
    """A generation that was compressed; it is read forwards, for each way back begins anew."""

    def __init__(self, path: Path):
        super().__init__(path)
        self._compressed = os.fdopen(os.dup(self._descriptor), "rb")
        self._reached = 0

    @cached_property
    def _content(self) -> BufferedIOBase:
        return DECOMPRESSORS[self.path.suffix](self._compressed)

    @cached_property
    def _prefix(self) -> bytes:
        with self._reading():
            return self._content.read(PREFIX)

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes as they were before they were compressed."""
        if offset + size <= len(self._prefix):
            return self._prefix[offset : offset + size]
        with self._reading():
            self._content.seek(offset)
            data = self._content.read(size)
        self._reached = max(self._reached, offset + len(data) if data else 0)
        return data

    def holds(self, read: int, digest: str) -> bool:
        """Tell whether this begins with what was read before it was compressed."""
        if prefix_digest(self._prefix[:read]) != digest:
            return False
        return read <= self._reached or bool(self.read(read - 1, 1))

    def mark(self) -> FileMark:
        """Return what it is known by; as nobody writes to it, that need not be what is in it."""
        return _unread_mark(self)

    def is_one_of(self, marks: Iterable[FileMark]) -> bool:
        """Tell whether this was read, before or after it was compressed; raise where nobody can tell."""
        marks = list(marks)
        if any(_is_unchanged(each, self) for each in marks):
            return True
        alike = [each for each in marks if each.length and self._begins_as(each)]
        if any(each.changed == self.changed for each in alike):
            return True
        if any(_same_second(each, self) and self._ends_as(each) for each in alike):
            return True
        if any(self._has_all_of(each) for each in alike):
            raise undecided(self.path, "it begins with all that was read of one, and was changed since")
        return False

    def close(self) -> None:
        """Close it."""
        self._compressed.close()
        super().close()

    def _begins_as(self, mark: FileMark) -> bool:
        return prefix_digest(self._prefix[: mark.size]) == mark.digest

    def _ends_as(self, mark: FileMark) -> bool:
        return self._tail(mark.length) == mark.tail and not self.read(mark.length, 1)

    def _has_all_of(self, mark: FileMark) -> bool:
        # Less than that may well be alike in two files.
        return mark.length >= MARK and self._tail(mark.length) == mark.tail

    def _tail(self, length: int) -> str:
        begin = max(0, length - MARK)
        return prefix_digest(self.read(begin, length - begin))

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
            raise SourceRefused(
                f'compressed file "{self.path}" cannot be read',
                detail=str(error),
                hint="see whether it is whole; its lines are not stored: to go on without them, move it away",
            ) from None


class UnreadableFile(OpenFile):
    """A generation in a form that only other programs read: known when it was done with before."""

    def mark(self) -> FileMark:
        """Return what it is known by."""
        return _unread_mark(self)

    def is_one_of(self, marks: Iterable[FileMark]) -> bool:
        """Tell whether it was there before, or has the time of one that was read; raise if not."""
        if any(_is_unchanged(each, self) or _same_second(each, self) for each in marks):
            return True
        raise undecided(self.path, f"files that end in {self.path.suffix} cannot be read here")


def open_written(path: Path) -> OpenFile | None:
    """Open a file that is being written, as it is; None if there is none."""
    return _opened(path, OpenFile)


def open_rotated(path: Path) -> OpenFile | None:
    """Open a file that was rotated, and perhaps compressed; None if it is gone."""
    if path.suffix in UNREADABLE:
        return _opened(path, UnreadableFile)
    return _opened(path, CompressedFile if path.suffix in DECOMPRESSORS else OpenFile)


def _opened(path: Path, kind: type[OpenFile]) -> OpenFile | None:
    try:
        return kind(path)
    except FileNotFoundError:
        return None


def prefix_digest(first: bytes) -> str:
    """Return the digest of the first bytes of a file."""
    return hashlib.sha256(first[:PREFIX]).hexdigest()


def undecided(path: Path, reason: str) -> SourceRefused:
    """Return the error for a compressed file of which nobody can tell whether its lines are stored."""
    return SourceRefused(
        f'file "{path}" may have lines that were not read',
        detail=reason,
        hint="decompress it beside the followed file to read it, or move it away if it was read",
    )


def _unread_mark(opened: OpenFile) -> FileMark:
    """Return what a file is known by that nobody writes to any more, without what is in it."""
    return FileMark(opened.inode, 0, prefix_digest(b""), 0, "", opened.changed)


def _is_unchanged(mark: FileMark, opened: OpenFile) -> bool:
    return (mark.inode, mark.changed) == (opened.inode, opened.changed)


def _same_second(mark: FileMark, opened: OpenFile) -> bool:
    """Tell whether a file was last changed when another one was; some programs keep whole seconds alone."""
    return mark.changed // _SECOND == opened.changed // _SECOND
