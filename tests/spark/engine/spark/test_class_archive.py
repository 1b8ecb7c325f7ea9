"""The archive of Spark's classes: made behind the first Java, mapped by the next; a damaged one is not."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

CODE = """
from pathlib import Path
from pyspark import SparkContext
from headwater.engine.spark.session import session
spark = session(master="local[1]", output=Path("spark.log"))
print(spark.range(5).selectExpr("sum(id)").first()[0])
print("headwater-classes" in Path(f"/proc/{SparkContext._gateway.proc.pid}/maps").read_text())
spark.stop()
"""


def started(place: Path, wish: str) -> list[str]:
    """Start Spark in a process of its own; return its sum, and whether its Java has mapped an archive."""
    kept = {"XDG_CACHE_HOME": str(place), "HEADWATER_CLASS_ARCHIVE": wish}
    command = [sys.executable, "-c", CODE]
    done = subprocess.run(
        command, env={**os.environ, **kept}, cwd=place, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def archive(place: Path, patience: float) -> Path | None:
    end = time.monotonic() + patience
    while time.monotonic() < end:
        found = list(place.glob("headwater-classes-*/*.jsa"))
        if found:
            return found[0]
        time.sleep(0.2)
    return None


@pytest.mark.long
def test_an_archive_is_made_behind_the_first_java_and_mapped_by_the_next(tmp_path: Path) -> None:
    assert started(tmp_path, "make") == ["10", "False"]
    made = archive(tmp_path, 240)
    assert made is not None
    assert [each.name for each in made.parent.iterdir()] == [made.name]
    assert started(tmp_path, "use") == ["10", "True"]
    made.chmod(0o600)
    made.write_bytes(made.read_bytes()[:100_000])  # it is damaged: Java does without
    assert started(tmp_path, "use") == ["10", "False"]
