"""Small scripts in front of a program: what Spark starts is started another way.

Invariant: a script is whole whenever it is there, and only this user can have written it.
"""

from __future__ import annotations

import os
import stat
import tempfile
import zlib
from pathlib import Path

from headwater.errors import HeadwaterError


def write(name: str, program: str, script: str) -> Path:
    """Write the script ``name`` for a program, in a place of its own; return where it is.

    That is among what the user's programs keep, where nobody clears up behind a process that runs for weeks;
    or a temporary place, if the user has no other.
    """
    place = f"headwater-{name}-{os.getuid()}-{zlib.crc32(program.encode()):08x}"
    try:
        return _written(_kept() / place / "bin" / name, script)
    except OSError:
        return _written(Path(tempfile.gettempdir()) / place / "bin" / name, script)


def _kept() -> Path:
    found = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    found.mkdir(parents=True, exist_ok=True)
    return found


def _written(path: Path, script: str) -> Path:
    for each in (path.parent.parent, path.parent):
        _make_own(each)
    name = path.name
    draft = path.with_name(f".{name}-{os.getpid()}")  # another process may be starting the script
    draft.write_text(script)
    draft.chmod(stat.S_IRWXU)
    os.replace(draft, path)
    return path


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
