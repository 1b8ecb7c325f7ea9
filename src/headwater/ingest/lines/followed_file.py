"""A file that grows and is rotated: which file a name means now, and which one was being read.

A file is found again after it was renamed (rename and create), and its copy after it was emptied
(copytruncate), or compressed. Invariant: the bytes of each generation of the file are given out once and in
order, from the place that was noted; if that generation is gone, that is an error, not a guess.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from headwater.errors import SourceRefused
from headwater.ingest.lines.generation import (
    COMPRESSED,
    FileMark,
    OpenFile,
    open_rotated,
    open_written,
    prefix_digest,
)

PASSED = 64
"""How many that were read are remembered by their marks; they are passed from the oldest to the newest."""


@dataclass(frozen=True)
class FilePlace:
    """How far a followed file was read: what is noted in the log."""

    inode: int = 0
    offset: int = 0
    """Where the next line begins."""
    line: int = 0
    """Its number, counted over all generations of the file."""
    digest: str = ""
    """Of the first bytes, as many as were read, or ``PREFIX``."""
    passed: tuple[str, ...] = ()
    """Rotated files that are done with, or were there before: by inode, first bytes and last change."""
    partitions: int = 0
    """How many the topic had: by it the lines that follow are placed, when they are sent again too."""
    horizon: int = 0
    """Those that were last changed by then are done with too: older ones than the ``PASSED`` newest."""

    def passing(self, *marks: FileMark) -> FilePlace:
        """Return the place with more files that are done with; of the oldest only up to when they go."""
        known = (*self.passed, *map(str, marks))
        changed = (FileMark.parse(mark).changed for mark in known[:-PASSED])
        return replace(self, passed=known[-PASSED:], horizon=max(self.horizon, *changed, 0))

    def is_past(self, opened: OpenFile) -> bool:
        """Tell whether a file is one of those that are done with."""
        return opened.changed <= self.horizon or opened.is_one_of(map(FileMark.parse, self.passed))

    def to_dict(self) -> dict[str, Any]:
        """Return it as it is noted."""
        return asdict(self)

    @classmethod
    def of(cls, noted: Mapping[str, Any]) -> FilePlace:
        """Return what ``to_dict`` has written."""
        return cls(**{**noted, "passed": tuple(noted["passed"])})


def begin(path: Path) -> FilePlace:
    """Return the place before the first byte of a file that was never followed; its older generations are
    passed."""
    return FilePlace(digest=prefix_digest(b"")).passing(*_marks(path))


def find(path: Path, place: FilePlace) -> OpenFile | None:
    """Open the generation that a place is in, wherever it is now; None if there is nothing yet.

    One of which nothing was read need not be found: it is the oldest that was not passed.
    """
    if not place.offset:
        return following(path, place)
    opened = _first(path, place, inode=place.inode) or copy_of(path, place)
    if opened is None:
        raise lost(path)
    return opened


def following(path: Path, place: FilePlace) -> OpenFile | None:
    """Open the generation that comes next: the oldest that was not passed, at last the file of the name
    itself."""
    current = open_written(path)  # first: if it is renamed now, it is found among the rotated ones
    with ExitStack() as unwanted:
        if current is not None:
            unwanted.callback(current.close)
        older = _oldest_left(path, place)
        if older is None:
            unwanted.pop_all()
            return current
    return older


def _oldest_left(path: Path, place: FilePlace) -> OpenFile | None:
    """Open the oldest of the rotated generations that was not passed."""
    for each in _rotated(path):
        opened = open_rotated(each)
        if opened is None:  # it was renamed, compressed or deleted just now
            return _oldest_left(path, place)
        with ExitStack() as unwanted:
            unwanted.callback(opened.close)
            if not place.is_past(opened) and not opened.empty:
                unwanted.pop_all()
                return opened
    return None


def copy_of(path: Path, place: FilePlace) -> OpenFile | None:
    """Open the copy that was made of a file before it was emptied, if there is one: it begins alike."""
    return _first(path, place) if place.offset else None


def entered(opened: OpenFile, place: FilePlace) -> FilePlace:
    """Return the place at the beginning of a generation."""
    return replace(place, inode=opened.inode, offset=0, digest=opened.digest(0))


def passed(opened: OpenFile, place: FilePlace) -> FilePlace:
    """Return the place with a generation that is done with; an empty one need not be known."""
    return place if opened.empty else place.passing(opened.mark())


def lost(path: Path) -> SourceRefused:
    """Return the error for a generation that is gone before it was read to its end."""
    return SourceRefused(
        f'file "{path}" is another one than was read before, and that one is gone',
        detail="it was deleted, emptied or compressed beyond reading while nobody followed it",
        hint="bring it back beside the file; or begin anew with the file as it is, under another --name",
    )


def _first(path: Path, place: FilePlace, inode: int | None = None) -> OpenFile | None:
    """Open the newest file that holds what was read up to a place."""
    for each in (path, *reversed(_rotated(path))):
        opened = open_written(each) if each == path else open_rotated(each)
        if opened is not None:
            with ExitStack() as unwanted:
                unwanted.callback(opened.close)
                meant = inode in (None, opened.inode) and opened.holds(place.offset, place.digest)
                if meant and not place.is_past(opened):
                    unwanted.pop_all()
                    return opened
    return None


def _rotated(path: Path) -> list[Path]:
    """Return the files beside a file that may be older generations of it, the oldest first."""
    if not path.parent.is_dir():
        return []
    names = (
        each for each in path.parent.iterdir() if each.name.startswith(path.name) and each.name != path.name
    )
    times = {each: at for each in names if (at := _modified(each)) is not None}
    whole = [each for each in times if not _is_being_made(each, times)]
    return sorted(whole, key=lambda each: (times[each], each))


def _is_being_made(path: Path, times: Mapping[Path, int]) -> bool:
    """Tell whether a compressed file is made of the one beside it: that is there until it is whole."""
    beside = path.with_suffix("")
    return path.suffix in COMPRESSED and beside in times and times[path] >= times[beside]


def _modified(path: Path) -> int | None:
    """Return when a regular file was changed."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns if stat.S_ISREG(found.st_mode) else None


def _marks(path: Path) -> Iterator[FileMark]:
    for each in _rotated(path):
        opened = open_rotated(each)
        if opened is not None:
            if opened.size:
                yield opened.mark()
            opened.close()
