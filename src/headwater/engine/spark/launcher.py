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
    """Write the script ``name`` for a program, in a place of its own; return where it is.

    That is among what the user's programs keep, where nobody clears up behind a process that runs for weeks;
    or a temporary place, if the user has no other.
    """
    place = f"{name}-{zlib.crc32(program.encode()):08x}"
    try:
        return _written(own_directory(place), name, script)
    except OSError:
        return _written(_made_own(Path(tempfile.gettempdir()), place), name, script)


def own_directory(name: str) -> Path:
    """Return a directory for what is kept between runs, which nobody else can write to."""
    kept = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    kept.mkdir(parents=True, exist_ok=True)
    return _made_own(kept, name)


def _written(directory: Path, name: str, script: str) -> Path:
    _make_own(directory / "bin")
    path = directory / "bin" / name
    durable.write(path, script, executable=True)  # another process may be starting it
    return path


def _made_own(parent: Path, name: str) -> Path:
    directory = parent / f"headwater-{name}-{os.getuid()}"
    _make_own(directory)
    return directory


def _make_own(directory: Path) -> None:
    """Make a directory that nobody else can write to, or refuse the one that is there."""
    try:
        directory.mkdir(mode=0o700)
    except FileExistsError:
        found = directory.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
            raise HeadwaterError(
                f'"{directory}" may be written to by another user',
                hint="remove it, or set XDG_CACHE_HOME to a place of your own",
            ) from None
