"""Spark, for what needs it: started late, and its failures told in our own words.

Importing pyspark takes a second and starting Spark ten, so nothing of the engine that needs it is imported
before everything else has been found to be right.
"""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headwater.errors import HeadwaterError
from headwater.pipeline.pipeline import Pipeline

_ERROR = re.compile(r"(?:Exception|Error): (.+)")


def start(
    output: Path,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    *,
    brief: bool = False,
) -> Any:
    """Return a Spark session that prints to a file."""
    from headwater.engine.spark.session import session

    before = _size(output)
    try:
        return session(master=master, settings=settings, output=output, brief=brief)
    except HeadwaterError:
        raise
    except Exception as error:
        detail = _cause(str(error)) or _cause(_printed(output, before)) or str(error).strip()
        hint = f"see {output}" if output.is_file() else "run the same command with --verbose"
        raise HeadwaterError("Spark did not start", detail=detail.split("\n")[0], hint=hint) from error


def start_aside(
    master: str | None = None, settings: Mapping[str, str] | None = None, *, brief: bool = False
) -> Any:
    """Return a Spark session for what only looks: what it prints is kept until the process ends.

    What it has printed stays if it did not even start.
    """
    folder = Path(tempfile.mkdtemp(prefix="headwater-"))
    started = start(folder / "spark.log", master, settings, brief=brief)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return started


def create_topics(pipeline: Pipeline) -> None:
    """Make the topics of a pipeline's sources and tables where they are not there, and check the others.

    It comes before Spark: a topic that does not fit is told at once, and the log is a log before
    Spark's own file lies in its directory.
    """
    from headwater.engine.batch.inputs import declare
    from headwater.log.open import open as open_log

    with open_log(pipeline.log) as log:
        for each in (*pipeline.sources, *pipeline.tables):
            declare(log, each)


def log_of(pipeline: Pipeline) -> Path:
    """Return the file to which Spark prints while a pipeline runs."""
    return pipeline.home / "spark.log"


def _cause(text: str) -> str | None:
    """Return what Java's first error says, where there is one."""
    found = _ERROR.search(text)
    return found[1][:300] if found else None


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _printed(path: Path, since: int) -> str:
    """Return what a file has got since it had a size."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        file.seek(since if since <= _size(path) else 0)  # it may have been emptied, as too long
        return file.read(1 << 20).decode(errors="replace")
