"""The manifest of a directory of Parquet files: which of them count, and how far they go.

It is one small file that is replaced whole, so a reader has either the batches before a commit or
those with it. Invariant: a file is complete and durable before a manifest names it, and stays for a
while after the last manifest that did.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from headwater import durable
from headwater import schema as schemas
from headwater.errors import SchemaError, SinkRefused, SinkUnavailable
from headwater.log.position import Position
from headwater.record import DELETED
from headwater.sinks.fencing import taken_over

FORMAT = 2
NAME = "headwater.json"
LOCK = "headwater.lock"
_LOCK_SECONDS = 60.0


@dataclass(frozen=True)
class File:
    """One file that counts."""

    name: str
    rows: int
    bytes: int
    tier: int = 0
    """How often its rows have been merged."""


@dataclass(frozen=True)
class Manifest:
    """What a directory holds, and how far it has got."""

    columns: str
    epoch: int = 0
    batch: int = -1
    positions: tuple[Position, ...] = ()
    clock: int | None = None
    deletions: bool = False
    """Whether there have been rows with ``_deleted``: then every reader gets that column."""
    files: tuple[File, ...] = ()
    """In the order of their batches."""
    replaced: tuple[tuple[str, float], ...] = ()
    """Files that merging has replaced, and when: readers may still be at them."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of what is read."""
        declared = schemas.parse(self.columns)
        return declared.append(pa.field(DELETED, pa.bool_())) if self.deletions else declared


def load(directory: Path) -> Manifest | None:
    """Return the manifest, None where there is none yet."""
    path = directory / NAME
    try:
        stored = orjson.loads(path.read_bytes())
        if stored["format"] != FORMAT:
            raise _other_format(path, stored["format"] > FORMAT)
        return _parsed(stored["manifest"])
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError) as error:
        raise SinkRefused(
            f'manifest "{path}" cannot be read', detail=str(error), hint="restore it from a copy"
        ) from None


def store(directory: Path, manifest: Manifest) -> None:
    """Replace the manifest, durably."""
    stored = {**asdict(manifest), "positions": [str(position) for position in manifest.positions]}
    durable.write(
        directory / NAME, orjson.dumps({"format": FORMAT, "manifest": stored}, option=orjson.OPT_INDENT_2)
    )


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the directory's lock: nobody else changes the manifest meanwhile."""
    fd = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _lock(fd, directory)
        yield
    finally:
        os.close(fd)


def begun(directory: Path, columns: str) -> Manifest:
    """Begin a new epoch, with the lock held, and return the manifest with it."""
    manifest = load(directory) or Manifest(columns)
    if manifest.columns != columns:
        raise SchemaError(
            f'directory "{directory}" holds other columns',
            detail=f"it has `{manifest.columns}`, asked for `{columns}`",
            hint="write to another directory",
        )
    manifest = replace(manifest, epoch=manifest.epoch + 1)
    store(directory, manifest)
    return manifest


def current(directory: Path, epoch: int) -> Manifest:
    """Return the manifest, or say that another runner has taken over."""
    manifest = load(directory)
    if manifest is None:
        raise missing_file(directory / NAME)
    if manifest.epoch == epoch:
        return manifest
    raise taken_over(f'directory "{directory}"', "nothing that a reader sees was written")


def missing_file(path: Path) -> SinkRefused:
    """Return the error for a file that somebody has removed."""
    return SinkRefused(
        f'file "{path}" is gone', detail="a batch that was committed needs it", hint="restore it from a copy"
    )


def _other_format(path: Path, newer: bool) -> SinkRefused:
    if newer:
        return SinkRefused(f'"{path}" was made by a newer Headwater', hint="upgrade Headwater")
    return SinkRefused(f'"{path}" was made by an older Headwater', hint="write to another directory")


def _lock(fd: int, directory: Path) -> None:
    """Wait for the lock, but not for ever: its holder may have been stopped in the middle."""
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise SinkUnavailable(
                    f'directory "{directory}" is locked by another process',
                    detail=f"it has been waited for for {_LOCK_SECONDS:.0f} seconds",
                    hint="see whether that process hangs",
                ) from None
        time.sleep(0.005)


def _parsed(stored: dict[str, Any]) -> Manifest:
    return Manifest(
        **{
            **stored,
            "positions": tuple(map(Position.parse, stored["positions"])),
            "files": tuple(File(**file) for file in stored["files"]),
            "replaced": tuple((name, at) for name, at in stored["replaced"]),
        }
    )
