"""Files as a power loss leaves them: what was synced is there, the rest as chance has it.

A name that was not synced is there or not, or is still that of another file; bytes that were not synced
are there, gone, cut, or nothing but zeros. Where a file system would keep an order between two of them,
this one does not: what is right here is right on any.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path
from typing import NamedTuple

from faults.synced import sitecustomize as synced
from unsynced import left


class Entry(NamedTuple):
    """What a name in a directory stands for."""

    inode: int
    kind: str
    leads: str


Names = dict[str, Entry]


class Disk:
    """Directories below a root whose syncs are noted; what else is there is safe by itself."""

    def __init__(self, root: Path, watched: list[str], safe: str):
        self.root, self._watched, self._safe = root, watched, safe
        self._notes = root.with_name(f"{root.name}-notes")
        self._notes.mkdir()
        self._chance = random.Random()
        for each in watched:
            (root / each).mkdir(parents=True, exist_ok=True)
            self._settle(root / each)

    def environment(self) -> dict[str, str]:
        """Return what makes processes note what they sync."""
        path = [str(Path(synced.__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
        return {
            synced.WATCHED: os.pathsep.join(str((self.root / each).resolve()) for each in self._watched),
            synced.NOTES: str(self._notes),
            "PYTHONPATH": os.pathsep.join(path),
        }

    def after_loss(self, root: Path, seed: int) -> Disk:
        """Return a disk elsewhere, with what a power loss at this moment leaves."""
        self._chance.seed(seed)
        skipped = {(self.root / each).resolve() for each in self._watched}

        def ignored(folder: str, names: list[str]) -> list[str]:
            return [name for name in names if Path(folder, name).resolve() in skipped]

        shutil.copytree(self.root, root, symlinks=True, ignore=ignored)
        for each in self._watched:
            self._restore(self.root / each, root / each)
        return Disk(root, self._watched, self._safe)

    def _settle(self, directory: Path) -> None:
        """Note all that is there as synced: it has been there since before the power came back."""
        found = synced.names(str(directory))
        synced.note(str(self._notes), f"{directory.stat().st_ino}.names", json.dumps(found).encode())
        for path in directory.iterdir():
            if path.is_dir() and not path.is_symlink():
                self._settle(path)
            elif path.is_file() and not path.is_symlink():
                os.link(path, self._notes / f"{path.stat().st_ino}.inode")
                synced.note(str(self._notes), f"{path.stat().st_ino}.bytes", path.read_bytes())

    def _restore(self, source: Path, target: Path) -> None:
        target.mkdir(parents=True, exist_ok=True)
        noted = self._note(source.stat().st_ino, "names")
        kept = _names(json.loads(noted)) if noted is not None else {}
        there = _names(synced.names(str(source)))
        for name in sorted({*kept, *there}):
            if name.startswith(self._safe) and name in there:
                shutil.copyfile(source / name, target / name)
                continue
            before, now = kept.get(name), there.get(name)
            chosen = now if before == now else self._chance.choice([before, now])
            if chosen is not None:
                self._place(chosen, source / name if chosen == now else None, target / name)

    def _place(self, entry: Entry, source: Path | None, target: Path) -> None:
        """Put under a name what it stands for; what it stood for before, if there is no source now."""
        if entry.kind == "link":
            target.symlink_to(entry.leads)
        elif entry.kind == "file":
            data = self._bytes(entry, source)
            if data is not None:
                target.write_bytes(data)
        elif source is not None:
            self._restore(source, target)

    def _bytes(self, entry: Entry, source: Path | None) -> bytes | None:
        safe = self._note(entry.inode, "bytes")
        if source is None:
            return safe
        data = source.read_bytes()
        if data == safe:
            return data
        if safe and len(data) >= len(safe):  # appended to, or overwritten: a sector is the old or the new one
            return left((safe, data), self._chance)
        cut = data[: self._chance.randrange(len(data) or 1)]
        older = [] if safe is None else [safe]
        return self._chance.choice([data, b"", cut, bytes(len(data)), *older])

    def _note(self, inode: int, kind: str) -> bytes | None:
        path = self._notes / f"{inode}.{kind}"
        return path.read_bytes() if path.exists() else None


def _names(told: dict[str, list[object]]) -> Names:
    return {name: Entry(*entry) for name, entry in told.items()}  # type: ignore[arg-type]
