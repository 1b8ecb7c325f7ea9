"""Spark's classes, loaded and checked once: a Java that maps an archive of them starts in half the time.

The first Java that runs a pipeline lists the classes that it loads. When it has ended, another one makes
the archive of them, in the background and at the lowest priority ("class data sharing"); those that follow
map it.

Invariant: an archive is whole whenever it is there and only this user can have written it; one that does
not fit Java or its class path is passed over by Java itself; what goes wrong here costs time and no more.
"""

from __future__ import annotations

import os
import subprocess
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyspark
from pyspark import SparkContext

from headwater.engine.spark import launcher
from headwater.engine.spark.java import Java
from headwater.errors import HeadwaterError

SWITCH = "HEADWATER_CLASS_ARCHIVE"
"""Set to ``off``, no archive is used or made; to ``use``, none is made."""
_OPTIONS = "SPARK_SUBMIT_OPTS"
"""Where Spark's launcher looks for options of the driver's Java, besides its own settings."""
ABANDONED_SECONDS = 3600
_QUIET = "-Xlog:disable -Xlog:all=error:stderr"
"""What Java has to say of an archive that does not fit is nobody's concern."""
_MAKE = """
while kill -0 "$1" 2>/dev/null; do sleep 1; done
nice -n 19 "$2" -Xshare:dump -XX:SharedClassListFile="$3" -XX:SharedArchiveFile="$3.draft" -cp "$5" &&
  mv "$3.draft" "$4"
rm -f "$3" "$3.draft"
"""


@contextmanager
def shared(java: Java, *, make: bool) -> Iterator[None]:
    """Let the Java that is started here map an archive; if there is none, ``make`` it for the next."""
    archive, switch = _archive(java), os.environ.get(SWITCH)
    if archive is None or switch == "off":
        yield
    elif archive.exists():
        with with_options(f"-XX:SharedArchiveFile={archive} -Xshare:auto {_QUIET}"):
            yield
    elif switch == "use" or not make or _is_being_made(archive):
        yield
    else:
        classes = archive.with_name(f"{archive.stem}-{os.getpid()}.classes")
        with with_options(f"-XX:DumpLoadedClassList={classes}"):
            yield
        with suppress(Exception):  # whatever it is, the next Java starts as this one did
            _make_in_background(java.program, classes, archive)


def _is_being_made(archive: Path) -> bool:
    """Tell whether another process lists classes for it, or makes it: several at once would be a load."""
    with suppress(OSError):  # one of them has just ended
        ages = (
            time.time() - each.stat().st_mtime for each in archive.parent.glob(f"{archive.stem}-*.classes")
        )
        return any(age < ABANDONED_SECONDS for age in ages)
    return True


@contextmanager
def with_options(options: str) -> Iterator[None]:
    """Give options to the Java that Spark's launcher starts here, after those that a user has given."""
    before = os.environ.get(_OPTIONS)
    os.environ[_OPTIONS] = f"{options} {before or ''}".strip()
    try:
        yield
    finally:
        if before is None:
            del os.environ[_OPTIONS]
        else:
            os.environ[_OPTIONS] = before


def _archive(java: Java) -> Path | None:
    """Return where the archive for a Java and this Spark is kept; None where it cannot be."""
    spark = f"{Path(pyspark.__file__).parent} {pyspark.__version__}"
    identity = f"{java.program.resolve()} {java.version_output} {spark}"
    try:
        directory = launcher.private_directory("classes")
    except (OSError, HeadwaterError):
        return None
    path = directory / f"{zlib.crc32(identity.encode()):08x}.jsa"
    return None if " " in str(path) else path  # Spark's launcher would take it for two options


def _make_in_background(java: Path, classes: Path, archive: Path) -> None:
    """Make an archive when the Java that lists its classes has ended, by a process of its own."""
    gateway: Any = SparkContext._gateway
    if gateway.proc is None:  # somebody else has started it, as spark-submit does
        return
    path = gateway.jvm.java.lang.System.getProperty("java.class.path")
    arguments = map(str, (gateway.proc.pid, java, classes, archive, path))
    nothing = subprocess.DEVNULL
    subprocess.Popen(
        ["/bin/sh", "-c", _MAKE, "sh", *arguments],
        stdin=nothing,
        stdout=nothing,
        stderr=nothing,
        start_new_session=True,
        cwd="/",
    )
