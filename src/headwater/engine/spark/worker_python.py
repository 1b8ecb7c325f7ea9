"""The Python of Spark's workers: this one, with pyspark as it is installed.

Spark puts an archive of its Python code before everything else that a worker finds, and what comes
out of an archive is compiled anew in every process: over a second for each that is started. The same
code is installed beside it, compiled once. Invariant: workers find what this process finds.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import py4j
import pyspark

from headwater.engine.spark import launcher

_SCRIPT = """#!/bin/sh
# Leaves out the archives that Spark puts first: what is in them is installed too, and compiled.
kept=
set -f
IFS=:
for each in $PYTHONPATH; do
  case $each in
    */python/lib/pyspark.zip | */python/lib/py4j-*-src.zip) ;;
    *) kept=$kept${{kept:+:}}$each ;;
  esac
done
PYTHONPATH=$kept
export PYTHONPATH
exec {python} "$@"
"""


def worker_python() -> str:
    """Return what starts this Python without the archives; this Python itself, where they are needed."""
    if not Path("/bin/sh").exists() or not _is_installed():
        return sys.executable
    script = launcher.write("python", sys.executable, _SCRIPT.format(python=shlex.quote(sys.executable)))
    return str(script) if os.access(script, os.X_OK) else sys.executable  # its disk may forbid programs


def _is_installed() -> bool:
    """Tell whether this process has the code of its Spark in files, and not in archives or elsewhere."""
    package, home = Path(pyspark.__file__).parent, os.environ.get("SPARK_HOME")
    if not (package.is_dir() and Path(py4j.__file__).exists()):
        return False
    return not home or (Path(home).exists() and package.samefile(home))
