"""What the operating system refuses, said in words: a full disk, no descriptors, a directory that is gone.

Invariant: whoever uses a log meets a ``HeadwaterError``, and never a bare ``OSError``; what may not pass by
itself is a ``LogRefused``.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headwater.durable import TRANSIENT
from headwater.errors import LogRefused, LogUnavailable

_FILES = ("too many files are open", "raise the limit (`ulimit -n`), or close what is no longer used")
_KNOWN = {
    errno.EMFILE: _FILES,
    errno.ENFILE: _FILES,
    errno.ENOSPC: ("the disk is full", "free some space, and try again"),
    errno.EDQUOT: ("the disk quota is used up", "free some space, and try again"),
    errno.EROFS: ("the directory is read-only", "open the log where it can be written"),
    errno.EACCES: ("the directory may not be used", "check its owner and permissions"),
    errno.ENOENT: ("a file is missing", "run `headwater log verify`, and restore it from a copy"),
}


def unusable(root: Path, error: OSError, doing: str = "be used") -> LogUnavailable:
    """Return the error that says why something cannot be done with a log."""
    if error.errno == errno.ENOENT and not root.exists():
        return log_deleted(root)
    what, hint = reason(error)
    detail = f'"{error.filename}"' if error.filename is not None else None
    return error_type(error)(f'log "{root}" cannot {doing}: {what}', detail=detail, hint=hint)


def error_type(error: OSError) -> type[LogUnavailable]:
    """Return the kind of error that it is: a directory that is gone may be put back, a file alone is not."""
    return LogUnavailable if error.errno in TRANSIENT else LogRefused


def reason(error: OSError) -> tuple[str, str]:
    """Return what was the matter, and what to do."""
    unknown = (error.strerror or str(error), "check the disk and the directory's owner and permissions")
    return _KNOWN.get(error.errno or 0, unknown)


def log_deleted(root: Path) -> LogUnavailable:
    """Return the error for a log whose directory was deleted while it was open."""
    return LogUnavailable(
        f'log "{root}" is gone',
        detail="its directory was deleted or moved while it was open",
        hint="put it back, or open the log again to begin an empty one",
    )


@contextmanager
def translating_errors(root: Path) -> Iterator[None]:
    """Raise what the operating system refuses inside the block as an error of the log."""
    try:
        yield
    except OSError as error:
        raise unusable(root, error) from error
