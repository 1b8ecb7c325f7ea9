"""What an error of the operating system means to a target that is a file or a directory.

Invariant: a full disk is called that, whoever notices it; only what may pass by itself is waited for.
"""

from __future__ import annotations

import re
import sqlite3

from headwater.durable import FULL, TRANSIENT
from headwater.errors import DiskFull, SinkRefused, SinkUnavailable

_FULL_DISK = re.compile("No space left on device|Disk quota exceeded|database or disk is full")
_DISK_ERROR = re.compile(
    r"(?:^(?:: )?|Caused by: |\): )(?:[\w.$]+: )*"
    r"[\w.$]*(?:OSError|IOException|FileSystemException|OperationalError|DiskFull|FSError): "
    rf".*(?:{_FULL_DISK.pattern})",
    re.MULTILINE,
)
"""An error of a disk in what Spark tells; the words alone may be a record's, which code has failed on."""


def is_full(error: BaseException) -> bool:
    """Tell whether an error, of this process or told by one of Spark's workers, is that of a full disk."""
    if isinstance(error, OSError | sqlite3.Error):
        return getattr(error, "errno", None) in FULL or _FULL_DISK.search(str(error)) is not None
    return _DISK_ERROR.search(str(error)) is not None


def full(what: str, detail: str) -> DiskFull:
    """Return the error for a disk without room."""
    return DiskFull(
        f"{what} cannot be written: the disk is full",
        detail=detail,
        hint="make room; what is there is whole, and the pipeline goes on by itself",
    )


def sink_error(error: OSError, what: str) -> SinkUnavailable:
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
