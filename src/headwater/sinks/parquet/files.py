"""Parquet files that appear whole.

Invariant: a file under its own name is complete and durable; what a crash has left half written has
the name of a draft.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headwater import durable
from headwater.sinks import crash
from headwater.sinks.parquet.manifest import File, Manifest, missing_file

_OLD_DRAFTS = (".draft-", ".headwater.json-")
"""How drafts were named by earlier versions."""


def write(
    directory: Path, label: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema, tier: int
) -> File:
    """Write rows to a new file and return it."""
    name = f"{label}-{uuid.uuid4().hex[:12]}.parquet"
    rows = 0
    with durable.drafting(directory / name) as draft:
        with pq.ParquetWriter(draft, schema, compression="zstd") as writer:
            for batch in batches:
                writer.write_batch(batch)
                rows += len(batch)
        durable.sync(draft)
        crash.point("parquet: file drafted")
    crash.point("parquet: file there")
    return File(name, rows, os.path.getsize(directory / name), tier)


def check(directory: Path, manifest: Manifest) -> None:
    """Refuse a directory that lacks a file which the manifest names."""
    there = set(os.listdir(directory))
    for file in manifest.files:
        if file.name not in there:
            raise missing_file(directory / file.name)


def tidy(directory: Path, manifest: Manifest) -> None:
    """Remove what a runner before has left behind: drafts, and files that no manifest has named."""
    listed = {file.name for file in manifest.files} | {name for name, _ in manifest.replaced}
    for path in directory.iterdir():
        orphan = path.suffix == ".parquet" and path.name not in listed
        if orphan or durable.is_draft(path) or path.name.startswith(_OLD_DRAFTS):
            path.unlink(missing_ok=True)
