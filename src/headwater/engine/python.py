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

import pyspark

from headwater.engine import wrapper

_SCRIPT = """#!/bin/sh
# Leaves out the archives that Spark puts first: what is in them is installed too, and compiled.
kept=
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


def quick() -> str:
    """Return what starts this Python without the archives; this Python itself, where they are needed."""
    installed = Path(pyspark.__file__).parent
    home = os.environ.get("SPARK_HOME")
    if not Path("/bin/sh").exists() or (home and not installed.samefile(home)):
        return sys.executable
    script = _SCRIPT.format(python=shlex.quote(sys.executable))
    return str(wrapper.write("python", sys.executable, script))
