"""Small scripts in front of a program: what Spark starts is started another way.

Invariant: a script is whole whenever it is there, and nobody else can have written it.
"""

from __future__ import annotations

import os
import stat
import tempfile
import zlib
from pathlib import Path

from headwater.errors import HeadwaterError


def write(name: str, program: str, script: str) -> Path:
    """Write the script ``name`` for a program, in a place of its own; return where it is."""
    place = f"headwater-{name}-{os.getuid()}-{zlib.crc32(program.encode()):08x}"
    path = Path(tempfile.gettempdir()) / place / "bin" / name
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    for each in (path.parent, path.parent.parent):
        if each.stat().st_uid != os.getuid():
            hint = "set TMPDIR to a place of your own"
            raise HeadwaterError(f'"{each}" belongs to another user', hint=hint)
    draft = path.with_name(f".{name}-{os.getpid()}")  # another process may be starting the script
    draft.write_text(script)
    draft.chmod(stat.S_IRWXU)
    os.replace(draft, path)
    return path
