"""Small scripts in front of a program: what Spark starts is started another way.

Invariant: a script is whole whenever it is there, and only this user can have written it, or anything else
in a directory that is this user's own.
"""

from __future__ import annotations

import os
import stat
import tempfile
import zlib
from pathlib import Path

from headwater import durable
from headwater.errors import HeadwaterError


def write(name: str, program: str, script: str) -> Path:
    """Write the script ``name`` for a program, in a directory of its own; return where it is.

    That is in the user's cache, where nobody clears up behind a process that runs for weeks; or in the
    temporary directory, if the user has no other.
    """
    directory = f"{name}-{zlib.crc32(program.encode()):08x}"
    try:
        return _write(private_directory(directory), name, script)
    except OSError:
        return _write(_make_in(Path(tempfile.gettempdir()), directory), name, script)


def private_directory(name: str) -> Path:
    """Return a directory for what is kept between runs, which nobody else can write to."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    cache.mkdir(parents=True, exist_ok=True)
    return _make_in(cache, name)


def _write(directory: Path, name: str, script: str) -> Path:
    _make_private(directory / "bin")
    path = directory / "bin" / name
    durable.write(path, script, executable=True)  # another process may be starting it
    return path


def _make_in(parent: Path, name: str) -> Path:
    directory = parent / f"headwater-{name}-{os.getuid()}"
    _make_private(directory)
    return directory


def _make_private(directory: Path) -> None:
    """Make a directory that nobody else can write to, or refuse the one that is there."""
    try:
        directory.mkdir(mode=0o700)
    except FileExistsError:
        status = directory.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
            raise HeadwaterError(
                f'"{directory}" may be written to by another user',
                hint="remove it, or set XDG_CACHE_HOME to a directory of your own",
            ) from None
