"""The small files of a pipeline's home as one value, and back again: notes, plans of micro-batches, links.

A home in a store has them on the machine that runs it, because Spark and the engine read and write
files there; what counts is the value that was put into the store. Hidden files, drafts, locks and databases
are of the machine alone.

Invariant: what is written back is what was collected, and nothing else of those folders is left.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDERS = ("nodes", "queries")
_NOTES = ("places.json",)
_OWN = (".draft", ".lock", ".db", ".db-wal", ".db-shm")
"""How names end that are of the machine alone."""


@dataclass(frozen=True)
class HomeSnapshot:
    """Files with their text and links with where they lead, by their paths within the home."""

    files: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the form that is stored."""
        return {"files": self.files, "links": self.links}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> HomeSnapshot:
        """Read what ``to_json`` has written."""
        return cls(stored["files"], stored["links"])

    def updated(self, folder: str, now: HomeSnapshot) -> HomeSnapshot:
        """Return it with a folder as that is now."""
        files, links = (_outside(folder, each) for each in (self.files, self.links))
        return HomeSnapshot({**files, **now.files}, {**links, **now.links})


def collect(home: Path, folder: Path) -> HomeSnapshot:
    """Return what is in a folder of a home, or in the whole of it."""
    roots = [home / name for name in (*FOLDERS, *_NOTES)] if folder == home else [folder]
    files, links = dict[str, str](), dict[str, str]()
    for path in (path for root in roots for path in _paths(root)):
        name = path.relative_to(home).as_posix()
        with suppress(FileNotFoundError):  # Spark removes plans that are old, whenever it likes
            if path.is_symlink():
                links[name] = os.readlink(path)
            else:
                files[name] = path.read_text()
    return HomeSnapshot(files, links)


def restore(home: Path, snapshot: HomeSnapshot) -> None:
    """Make a home's small files those of a snapshot."""
    for name in FOLDERS:
        shutil.rmtree(home / name, ignore_errors=True)
    for name in _NOTES:
        (home / name).unlink(missing_ok=True)
    for name, text in snapshot.files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    for name, target in snapshot.links.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).symlink_to(target, target_is_directory=True)


def _paths(root: Path) -> Iterator[Path]:
    """Yield files and links below a path, or the path itself; links are not followed.

    In the order of their names, which is the opposite of that in which a micro-batch writes them: Spark's
    ``commits``, our ``committed``, then ``offsets``. What is there is never without what it follows from.
    """
    if root.is_symlink() or root.is_file():
        yield root
        return
    with suppress(FileNotFoundError, NotADirectoryError):
        for entry in sorted(os.scandir(root), key=lambda entry: entry.name):
            if not entry.name.startswith(".") and not entry.name.endswith(_OWN):
                yield from _paths(Path(entry.path))


def _outside(folder: str, paths: dict[str, str]) -> dict[str, str]:
    within = (folder, f"{folder}/") if folder != "." else ("",)
    return {path: each for path, each in paths.items() if path != folder and not path.startswith(within[-1])}
