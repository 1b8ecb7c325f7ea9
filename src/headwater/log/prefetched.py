"""Records of a broker's topic in local files, decoded ahead of those who ask for them.

One process reads ahead and writes the files; others on the same machine find them by the offsets in their
names. They are a copy: what is not there, or not whole, is read from the log. A folder belongs to the process
that has locked it, and goes with that process or, after a ``kill -9``, when the next one reads ahead.

Invariant: a file appears whole, holds what ``Log.read(…, meta=True)`` gives of its offsets, and never
changes.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

_LOCK = "lock"
_numbers = itertools.count()


class Span(NamedTuple):
    """Records of one partition of a topic, from an offset to another."""

    topic: str
    id: str | None
    """The topic's identity: one that was made again under its name is not read in its place."""
    partition: int
    start: int
    end: int


class PrefetchFolder:
    """The files of one process that reads one topic ahead."""

    def __init__(self, root: Path, topic_id: str):
        remove_abandoned(root)
        self._path = root / topic_id / f"{os.getpid()}-{next(_numbers)}"
        self._path.mkdir(parents=True)
        self._lock = open(self._path / _LOCK, "wb")
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def add(self, partition: int, base: int, end: int, batch: pa.RecordBatch) -> None:
        """Write the records of some offsets; where the disk is full, they are read from the log instead."""
        path = self._path / f"{partition}-{base}-{end}.arrow"
        draft = path.with_suffix(".draft")
        try:
            with pa.OSFile(str(draft), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
                writer.write_batch(batch)
            draft.rename(path)
        except OSError:
            draft.unlink(missing_ok=True)

    def remove(self, partition: int, before: int) -> None:
        """Remove the files of a partition that end at an offset or before it."""
        for file in _files(self._path, partition):
            if file.end <= before:
                file.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Remove all of it."""
        shutil.rmtree(self._path, ignore_errors=True)
        self._lock.close()


class _File(NamedTuple):
    base: int
    end: int
    path: Path


def read(root: Path, span: Span) -> list[pa.RecordBatch] | None:
    """Return the records of a span with their metadata, or None where they are not all there."""
    with suppress(OSError, pa.ArrowInvalid):  # removed meanwhile
        for folder in (root / str(span.id)).iterdir():
            files = _covering(_files(folder, span.partition), span)
            if files is not None:
                return [batch for file in files for batch in _cut(file.path, span)]
    return None


def _files(folder: Path, partition: int) -> list[_File]:
    prefix = f"{partition}-"
    names = [name for name in os.listdir(folder) if name.startswith(prefix) and name.endswith(".arrow")]
    parts = [name.removesuffix(".arrow").split("-") for name in names]
    return sorted(
        _File(int(base), int(end), folder / name) for name, (_, base, end) in zip(names, parts, strict=True)
    )


def _covering(files: Sequence[_File], span: Span) -> list[_File] | None:
    """Return the files that a span lies in, or None where there is a hole."""
    chosen, reached = [], span.start
    for file in files:
        if file.base <= reached < file.end and reached < span.end:
            chosen.append(file)
            reached = file.end
    return chosen if reached >= span.end else None


def _cut(path: Path, span: Span) -> Iterator[pa.RecordBatch]:
    reader = pa.ipc.open_file(pa.memory_map(str(path)))
    for number in range(reader.num_record_batches):
        batch = reader.get_batch(number)
        first, last = np.searchsorted(batch.column("_offset").to_numpy(), [span.start, span.end])
        if first < last:
            yield batch.slice(first, last - first)


def remove_abandoned(root: Path) -> bool:
    """Remove the folders of processes that are gone; return whether there are others."""
    others = False
    for lock in root.glob(f"*/*/{_LOCK}"):
        with suppress(FileNotFoundError), open(lock, "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(lock.parent, ignore_errors=True)
            except BlockingIOError:
                others = True
    return others
