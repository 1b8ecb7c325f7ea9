"""The states of a node's buckets: which chunks they are made of, after each micro-batch.

The driver lists the chunks of all buckets in one file per micro-batch before the results of that
micro-batch are committed, and keeps the lists of the last few: a micro-batch that is repeated
begins from the list before it. Each runner has a term of its own, so what a runner that has been
replaced still writes is not taken for its successor's.

Invariant: a list is there whole or not at all; once a micro-batch is committed, its list and the chunks
that the list names are durable.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from headwater import durable
from headwater.engine.home import notes
from headwater.engine.state import chunk_files
from headwater.engine.state.bucket import Meta
from headwater.errors import HeadwaterError

KEPT = 3
"""Micro-batches whose lists are kept; the last one alone can be repeated, however often."""

_TRIMMED = "trimmed"
"""A file that is there once a list was removed: then there was a state before the oldest that is left."""

_LIST = re.compile(r"(\d+)\.(\d+)\.json")
_CHUNK = re.compile(r"[0-9a-f]{16}")

Buckets = dict[int, Meta]


class ListName(NamedTuple):
    """Which list it is: of two of one micro-batch, that of the later term counts."""

    batch: int
    term: int


class RunLists:
    """The states of one version of a node."""

    def __init__(self, home: Path):
        self.home = home
        """Where the lists are, and the chunks: one sync makes the names of both durable."""
        self._known: dict[ListName, Buckets] = {}
        self._unchecked: set[ListName] = set()
        self._term = 0

    def begin(self) -> None:
        """Begin a new term, and remove what no list names."""
        durable.make(self.home)
        durable.sweep(self.home)
        places = self._places()
        self._term = _next_term(self.home, places)
        self._known = {place: _read(self._path(place)) for place in places}
        self._unchecked = set(self._known)
        self._sweep({path.name for path in self.home.iterdir() if _CHUNK.fullmatch(path.name)})

    def before(self, batch: int) -> Buckets:
        """Return the buckets as they were before a micro-batch."""
        places = [place for place in self._known if place.batch < batch]
        if not places and self._trimmed():
            raise HeadwaterError(f'the state before batch {batch} is no longer kept in "{self.home}"')
        return self._checked(max(places)) if places else {}

    def _checked(self, place: ListName) -> Buckets:
        """Return a list; one that a runner before has left, and that counts, must have all its chunks.

        One that does not count may lack some after a power loss, as it names what was not committed.
        """
        buckets = self._known[place]
        if place in self._unchecked:
            chunk_files.check(self.home, [chunk for meta in buckets.values() for chunk in meta.chunks])
            self._unchecked.discard(place)
        return buckets

    def commit(self, batch: int, changed: Mapping[int, Meta]) -> None:
        """Note the buckets as they are after a micro-batch, given those that it has changed."""
        place, buckets = ListName(batch, self._term), {**self.before(batch), **changed}
        notes.write(self._path(place), {number: meta.to_json() for number, meta in buckets.items()})
        self._known[place] = buckets
        gone = self._outdated()
        kept = {each.batch for each in self._known.keys() - gone}
        if any(each.batch not in kept for each in gone):  # not where only its list of an earlier term goes
            self._note_trimmed()
        named = _files(*(self._known.pop(each) for each in gone))
        for each in gone:
            self._path(each).unlink(missing_ok=True)
        self._sweep(named)

    def _outdated(self) -> list[ListName]:
        """Return the lists of micro-batches too long ago, and those of earlier terms of the others."""
        batches = sorted({place.batch for place in self._known})[-KEPT:]
        kept = {max(place for place in self._known if place.batch == batch) for batch in batches}
        return [place for place in self._known if place not in kept]

    def _trimmed(self) -> bool:
        return (self.home / _TRIMMED).exists()

    def _note_trimmed(self) -> None:
        if not self._trimmed():
            durable.write(self.home / _TRIMMED, b"")

    def _sweep(self, candidates: set[str]) -> None:
        """Remove those of some files of chunks that no list names any more."""
        for name in candidates - _files(*self._known.values()):
            (self.home / name).unlink(missing_ok=True)

    def _path(self, place: ListName) -> Path:
        return self.home / f"{place.batch}.{place.term}.json"

    def _places(self) -> list[ListName]:
        found = map(_LIST.fullmatch, os.listdir(self.home))
        return [ListName(int(name[1]), int(name[2])) for name in found if name]


def _files(*lists: Buckets) -> set[str]:
    return {chunk.file for buckets in lists for meta in buckets.values() for chunk in meta.chunks}


def _next_term(folder: Path, places: list[ListName]) -> int:
    """Return a number higher than that of any runner before, which no other runner gets.

    A power loss may take back the newest of the files that number runners, but not the lists that count.
    """
    numbers = [*(int(path.name[5:]) for path in folder.glob("term-*")), *(place.term for place in places)]
    term = 1 + max(numbers, default=0)
    while True:
        try:
            os.close(os.open(folder / f"term-{term}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            break
        except FileExistsError:
            term += 1
    for path in folder.glob("term-*"):
        if int(path.name[5:]) < term - 1:
            path.unlink(missing_ok=True)
    return term


def _read(path: Path) -> Buckets:
    return {int(number): Meta.from_json(meta) for number, meta in notes.read(path).items()}
