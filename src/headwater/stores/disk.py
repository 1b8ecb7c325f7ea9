"""What an error of the operating system means to a target that is a file or a directory.

Invariant: a full disk is called that, whoever notices it; only what may pass by itself is waited for.
"""

from __future__ import annotations

from headwater.durable import FULL, TRANSIENT
from headwater.errors import DiskFull, SinkRefused, SinkUnavailable

_WORDS = ("No space left on device", "Disk quota exceeded", "database or disk is full")


def is_full(error: BaseException) -> bool:
    """Tell whether an error, of this process or told by one of Spark's workers, is that of a full disk."""
    if isinstance(error, OSError) and error.errno in FULL:
        return True
    return any(words in str(error) for words in _WORDS)


def full(what: str, detail: str) -> DiskFull:
    """Return the error for a disk without room."""
    return DiskFull(
        f"{what} cannot be written: the disk is full",
        detail=detail,
        hint="make room; what is there is whole, and the pipeline goes on by itself",
    )


def told(error: OSError, what: str) -> SinkUnavailable:
    """Return an error of the operating system as ours."""
    detail = error.strerror or str(error)
    if is_full(error):
        return full(what, detail)
    kind = SinkUnavailable if error.errno in TRANSIENT else SinkRefused
    return kind(
        f"{what} cannot be used",
        detail=detail,
        hint="check the disk, and the owner and permissions of the file and its directory",
    )
