"""The manifests of a node's state: which chunks its buckets are made of, after each micro-batch.

The driver lists the chunks of all buckets in one file, the manifest, per micro-batch before the results of
that micro-batch are committed, and retains the manifests of the last few: a micro-batch that is repeated
begins from the manifest before it. Each runner has an epoch of its own, so what a runner that has been
replaced still writes is not taken for its successor's.

Invariant: a manifest is there whole or not at all; once a micro-batch is committed, its manifest and the
chunks that it names are durable.
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
from headwater.engine.state.bucket import BucketMeta
from headwater.errors import HeadwaterError

RETAINED = 3
"""Micro-batches whose manifests are retained; the last one alone can be repeated, however often."""

_TRIMMED = "trimmed"
"""A file that is there once a manifest was removed: then there was a state before the oldest that is left."""

_EPOCH = "term-"
"""How the names of the files begin that number runners."""

_MANIFEST = re.compile(r"(\d+)\.(\d+)\.json")
_CHUNK = re.compile(r"[0-9a-f]{16}")

Buckets = dict[int, BucketMeta]


class ManifestName(NamedTuple):
    """Which manifest it is: of two of one micro-batch, that of the later epoch counts."""

    batch: int
    epoch: int


class StateManifests:
    """The states of one version of a node."""

    def __init__(self, home: Path):
        self.home = home
        """Where the manifests are, and the chunks: one sync makes the names of both durable."""
        self._manifests: dict[ManifestName, Buckets] = {}
        self._unchecked: set[ManifestName] = set()
        self._epoch = 0

    def begin(self) -> None:
        """Begin a new epoch, and remove the chunks that no manifest names."""
        durable.make(self.home)
        durable.sweep(self.home)
        names = self._names()
        self._epoch = _next_epoch(self.home, names)
        self._manifests = {name: _read(self._path(name)) for name in names}
        self._unchecked = set(self._manifests)
        self._sweep({path.name for path in self.home.iterdir() if _CHUNK.fullmatch(path.name)})

    def before(self, batch: int) -> Buckets:
        """Return the buckets as they were before a micro-batch."""
        names = [name for name in self._manifests if name.batch < batch]
        if not names and self._trimmed():
            raise HeadwaterError(f'the state before batch {batch} is no longer kept in "{self.home}"')
        return self._checked(max(names)) if names else {}

    def _checked(self, name: ManifestName) -> Buckets:
        """Return a manifest; one that an earlier runner wrote, and that counts, must have all its chunks.

        One that does not count may lack some after a power loss, as it names what was not committed.
        """
        buckets = self._manifests[name]
        if name in self._unchecked:
            chunk_files.check(self.home, [chunk for meta in buckets.values() for chunk in meta.stored])
            self._unchecked.discard(name)
        return buckets

    def commit(self, batch: int, changed: Mapping[int, BucketMeta]) -> None:
        """Note the buckets as they are after a micro-batch, given those that it has changed."""
        name, buckets = ManifestName(batch, self._epoch), {**self.before(batch), **changed}
        notes.write(self._path(name), {number: meta.to_json() for number, meta in buckets.items()})
        self._manifests[name] = buckets
        self._trim()

    def _trim(self) -> None:
        """Remove the outdated manifests, and the chunks that they alone name."""
        outdated = self._outdated()
        retained = {name.batch for name in self._manifests.keys() - outdated}
        if any(name.batch not in retained for name in outdated):  # not where only an earlier epoch's goes
            self._note_trimmed()
        chunk_names = _files(*(self._manifests.pop(name) for name in outdated))
        for name in outdated:
            self._path(name).unlink(missing_ok=True)
        self._sweep(chunk_names)

    def _outdated(self) -> list[ManifestName]:
        """Return the manifests of micro-batches too long ago, and those of earlier epochs of the others."""
        batches = sorted({name.batch for name in self._manifests})[-RETAINED:]
        retained = {max(name for name in self._manifests if name.batch == batch) for batch in batches}
        return [name for name in self._manifests if name not in retained]

    def _trimmed(self) -> bool:
        return (self.home / _TRIMMED).exists()

    def _note_trimmed(self) -> None:
        if not self._trimmed():
            durable.write(self.home / _TRIMMED, b"")

    def _sweep(self, candidates: set[str]) -> None:
        """Remove those of some files of chunks that no manifest names any more."""
        for name in candidates - _files(*self._manifests.values()):
            (self.home / name).unlink(missing_ok=True)

    def _path(self, name: ManifestName) -> Path:
        return self.home / f"{name.batch}.{name.epoch}.json"

    def _names(self) -> list[ManifestName]:
        matches = map(_MANIFEST.fullmatch, os.listdir(self.home))
        return [ManifestName(int(match[1]), int(match[2])) for match in matches if match]


def _files(*manifests: Buckets) -> set[str]:
    return {chunk.file for buckets in manifests for meta in buckets.values() for chunk in meta.stored}


def _next_epoch(folder: Path, names: list[ManifestName]) -> int:
    """Return a number higher than that of any runner before, which no other runner gets.

    A power loss may take back the newest of the files that number runners, but not the manifests that count.
    """
    numbers = [
        *(int(path.name[len(_EPOCH) :]) for path in folder.glob(f"{_EPOCH}*")),
        *(name.epoch for name in names),
    ]
    epoch = 1 + max(numbers, default=0)
    while True:
        try:
            os.close(os.open(folder / f"{_EPOCH}{epoch}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            break
        except FileExistsError:
            epoch += 1
    for path in folder.glob(f"{_EPOCH}*"):
        if int(path.name[len(_EPOCH) :]) < epoch - 1:
            path.unlink(missing_ok=True)
    return epoch


def _read(path: Path) -> Buckets:
    return {int(number): BucketMeta.from_json(meta) for number, meta in notes.read(path).items()}
