"""Files that a power loss takes nothing from: written whole, synced, and found under their names again.

A file's bytes and its name are made durable apart: the bytes by syncing the file, the name by
syncing the directory that has it. Invariant: when a function returns, what it was asked for is on the
disk; until then, what was there before is, whole.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""What a disk without room says."""
TRANSIENT = FULL | {
    errno.EAGAIN, errno.EBUSY, errno.EINTR, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOLCK,
    errno.ENOMEM, errno.ENOTCONN, errno.ESTALE, errno.ETIMEDOUT,
}  # fmt: skip
"""What a disk, or one behind a network, says for a while."""
_DRAFT = re.compile(r"\..+-[0-9a-f]{32}")
_ABANDONED_SECONDS = 3600.0


def write(path: Path, data: bytes | str, *, executable: bool = False) -> None:
    """Write a file, or replace it: whole or not at all, whoever else is writing it."""
    with drafting(path) as draft:
        create(draft, data.encode() if isinstance(data, str) else data)
        if executable:
            draft.chmod(stat.S_IRWXU)


def write_new(path: Path, data: bytes) -> bool:
    """Write a file under a name that none has, whole or not at all; tell whether none had it."""
    draft = _draft(path)
    try:
        create(draft, data)
        os.link(draft, path)  # which, other than a rename, takes no name away
    except FileExistsError:
        return False
    finally:
        draft.unlink(missing_ok=True)
    sync(path.parent)
    return True


@contextmanager
def drafting(path: Path) -> Iterator[Path]:
    """Yield a path to write a file at and to sync it; then it has its name, or is removed on any failure."""
    draft = _draft(path)
    try:
        yield draft
        replace(draft, path)
    except BaseException:
        with suppress(OSError):  # what went wrong before is what is told
            draft.unlink(missing_ok=True)
        raise


@contextmanager
def drafting_tree(directory: Path) -> Iterator[Path]:
    """Yield a path to fill a directory at; at the end all of it is synced, and it has its name.

    One process at a time fills a directory: what one that has died left of it is removed first.
    """
    draft = directory.with_name(f"{directory.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    yield draft
    sync_tree(draft)
    replace(draft, directory)


def _draft(path: Path) -> Path:
    return path.with_name(f".{path.name}-{uuid.uuid4().hex}")


def create(path: Path, data: bytes) -> None:
    """Write a new file's bytes; its name is durable once its directory is synced."""
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def replace(draft: Path, path: Path) -> None:
    """Give a file or a link its name, in place of what had it; its bytes must be synced."""
    os.replace(draft, path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Sync the bytes of a file that others have written, or the names in a directory."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_tree(directory: Path) -> None:
    """Sync a directory with all that is below it; links are names only."""
    for folder, _, names in os.walk(directory):
        for name in names:
            if not (path := Path(folder) / name).is_symlink():
                sync(path)
        sync(Path(folder))


def make(directory: Path, *, private: bool = False) -> None:
    """Make a directory and those above it that are missing; one that is there was made by this, too.

    One that is ``private`` can be entered by its owner only: what a log and a pipeline keep may be anybody's
    data, and the error messages of user code tell of it. What is there keeps the rights that it has.
    """
    if directory.is_dir():
        return
    make(directory.parent)
    directory.mkdir(mode=0o700 if private else 0o777, exist_ok=True)
    sync(directory.parent)


def is_draft(path: Path) -> bool:
    """Tell whether a file is one that was being written, here or by a process that has died."""
    return _DRAFT.fullmatch(path.name) is not None


def sweep(directory: Path) -> None:
    """Remove the drafts of processes that have died; those of the last hour may be of a living one."""
    for path in directory.iterdir() if directory.is_dir() else ():
        if is_draft(path) and time.time() - path.lstat().st_mtime > _ABANDONED_SECONDS:
            path.unlink(missing_ok=True)
