"""The states of a node's buckets: which chunks they are made of, after each micro-batch.

The driver lists the chunks of all buckets in one file per micro-batch before the results of that
micro-batch are committed, and keeps the lists of the last few: a micro-batch that is repeated
begins from the list before it. Each runner has a term of its own, so what a runner that has been
replaced still writes is not taken for its successor's.

Invariant: a chunk that a kept list names is there, and a list is there whole or not at all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from headwater.engine.bucket import Meta
from headwater.errors import HeadwaterError

KEPT = 3
"""Micro-batches whose lists are kept; the last one alone can be repeated, however often."""

_TRIMMED = "trimmed"
"""A file that is there once a list was removed: then there was a state before the oldest that is left."""

Buckets = dict[int, Meta]


class Place(NamedTuple):
    """Which list it is: of two of one micro-batch, that of the later term counts."""

    batch: int
    term: int


class States:
    """The states of one version of a node."""

    def __init__(self, home: Path):
        self._lists, self.chunks = home / "buckets", home / "chunks"
        self._known: dict[Place, Buckets] = {}
        self._term = 0

    def begin(self) -> None:
        """Begin a new term, and remove what no list names."""
        for folder in (self._lists, self.chunks):
            folder.mkdir(parents=True, exist_ok=True)
        self._term = _next_term(self._lists)
        self._known = {place: _read(self._path(place)) for place in self._places()}
        self._sweep({path.name for path in self.chunks.iterdir()})

    def before(self, batch: int) -> Buckets:
        """Return the buckets as they were before a micro-batch."""
        places = [place for place in self._known if place.batch < batch]
        if not places and self._trimmed():
            raise HeadwaterError(f'the state before batch {batch} is no longer kept in "{self._lists}"')
        return self._known[max(places)] if places else {}

    def commit(self, batch: int, changed: Mapping[int, Meta]) -> None:
        """Note the buckets as they are after a micro-batch, given those that it has changed."""
        place, buckets = Place(batch, self._term), {**self.before(batch), **changed}
        _write(self._path(place), buckets)
        self._known[place] = buckets
        gone = self._outdated()
        kept = {each.batch for each in self._known.keys() - gone}
        if any(each.batch not in kept for each in gone):  # not where only its list of an earlier term goes
            (self._lists / _TRIMMED).touch()
        named = _tokens(*(self._known.pop(each) for each in gone))
        for each in gone:
            self._path(each).unlink(missing_ok=True)
        self._sweep(named)

    def _outdated(self) -> list[Place]:
        """Return the lists of micro-batches too long ago, and those of earlier terms of the others."""
        batches = sorted({place.batch for place in self._known})[-KEPT:]
        kept = {max(place for place in self._known if place.batch == batch) for batch in batches}
        return [place for place in self._known if place not in kept]

    def _trimmed(self) -> bool:
        return (self._lists / _TRIMMED).exists()

    def _sweep(self, candidates: set[str]) -> None:
        """Remove those of some chunks that no list names any more."""
        for token in candidates - _tokens(*self._known.values()):
            (self.chunks / token).unlink(missing_ok=True)

    def _path(self, place: Place) -> Path:
        return self._lists / f"{place.batch}.{place.term}.json"

    def _places(self) -> list[Place]:
        return [Place(*map(int, path.name.split(".")[:2])) for path in self._lists.glob("*.json")]


def _tokens(*lists: Buckets) -> set[str]:
    return {chunk.token for buckets in lists for meta in buckets.values() for chunk in meta.chunks}


def _next_term(folder: Path) -> int:
    """Return a number higher than that of any runner before, which no other runner gets."""
    term = 1 + max((int(path.name[5:]) for path in folder.glob("term-*")), default=0)
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
    return {int(number): Meta.from_json(meta) for number, meta in json.loads(path.read_text()).items()}


def _write(path: Path, buckets: Buckets) -> None:
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps({number: meta.to_json() for number, meta in buckets.items()}))
    os.replace(draft, path)
