"""Merging small files into larger ones, so that a reader opens tens of them and not thousands.

Sixteen files of one tier become one of the next, so a row is rewritten only as often as there are
tiers. Invariant: merging changes neither the rows nor their order, and a file that was replaced
stays until its readers have had time to finish.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headwater import schema as schemas
from headwater.sinks import crash
from headwater.sinks.parquet import files, manifest
from headwater.sinks.parquet.manifest import File, Manifest

FILES = 16
MOST_BYTES = 256 << 20
"""A file that would become larger than this is not made."""


def due(listed: Manifest) -> tuple[File, ...]:
    """Return the newest files that are to become one, if any."""
    tail: list[File] = []
    for file in reversed(listed.files):
        if file.tier != listed.files[-1].tier:
            break
        tail.append(file)
    if len(tail) < FILES or sum(file.bytes for file in tail) > MOST_BYTES:
        return ()
    return tuple(reversed(tail))


def merge(directory: Path, epoch: int, keep: float) -> None:
    """Merge until nothing is due, and remove what was replaced long enough ago."""
    listed = manifest.current(directory, epoch)
    while chosen := due(listed):
        merged = _merge(directory, chosen, listed)
        crash.point("parquet: merged file there")
        with manifest.locked(directory):
            listed = _with_merged(manifest.current(directory, epoch), chosen, merged)
            manifest.store(directory, listed)
        crash.point("parquet: merged")
    if listed.replaced and listed.replaced[0][1] < time.time() - keep:
        _remove_old(directory, epoch, keep)


def _merge(directory: Path, chosen: tuple[File, ...], listed: Manifest) -> File:
    label = f"{chosen[0].name.split('-')[0]}-{chosen[-1].name.split('-')[0]}"
    return files.write(
        directory, label, _rows(directory, chosen, listed), _schema(listed), chosen[0].tier + 1
    )


def _schema(listed: Manifest) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in listed.schema])


def _rows(directory: Path, chosen: tuple[File, ...], listed: Manifest) -> Iterator[pa.RecordBatch]:
    for file in chosen:
        with pq.ParquetFile(directory / file.name) as opened:
            for batch in opened.iter_batches():
                yield schemas.evolve(batch, _schema(listed))


def _with_merged(listed: Manifest, chosen: tuple[File, ...], merged: File) -> Manifest:
    at = listed.files.index(chosen[0])
    rest = listed.files[at + len(chosen) :]
    replaced = tuple((file.name, time.time()) for file in chosen)
    files = (*listed.files[:at], merged, *rest)
    return replace(listed, files=files, replaced=listed.replaced + replaced)


def _remove_old(directory: Path, epoch: int, keep: float) -> None:
    with manifest.locked(directory):
        listed = manifest.current(directory, epoch)
        old = {name for name, at in listed.replaced if at < time.time() - keep}
        # Names first: a file that is left over is found and removed at the next start.
        recent = tuple(entry for entry in listed.replaced if entry[0] not in old)
        manifest.store(directory, replace(listed, replaced=recent))
    for name in old:
        (directory / name).unlink(missing_ok=True)
