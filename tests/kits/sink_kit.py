"""What tests of sinks by the public suite have in common."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from headwater.testing.sink_suite import Check


def named(check: Check) -> str:
    return getattr(check, "__name__", "check")


def saved(directory: Path) -> Callable[[], None]:
    """Copy a directory; return what puts the copy in its place."""
    backup = directory.with_name("backup")
    shutil.copytree(directory, backup)

    def restore() -> None:
        shutil.rmtree(directory)
        shutil.copytree(backup, directory)

    return restore
