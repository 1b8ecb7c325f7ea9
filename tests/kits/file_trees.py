"""A directory as it lies there, to be compared: what only looks leaves every file as it was."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def tree(root: Path) -> dict[str, tuple[object, ...]]:
    """Return what is below a directory: each file's content and when it was changed, and where links lead."""
    return {str(path.relative_to(root)): _entry(path) for path in sorted(root.rglob("*"))}


def _entry(path: Path) -> tuple[object, ...]:
    if path.is_symlink():
        return ("link", os.readlink(path))
    if path.is_dir():
        return ("directory",)
    return (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
