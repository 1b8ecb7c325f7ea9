"""Reading what a manifest lists, and nothing else that lies in the directory.

Invariant: what is read is the result of whole batches, from the first to some last one.
"""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from headwater.errors import SinkUnavailable, UsageError
from headwater.sinks.parquet.manifest import Manifest, load

_TRIES = 5


def describe(directory: str | os.PathLike[str]) -> Manifest:
    """Return which files count now, and how far they go."""
    found = load(Path(directory))
    if found is None:
        raise UsageError(
            f'no Parquet sink has written to "{os.fspath(directory)}"',
            hint="it is there when its pipeline has run for the first time",
        )
    return found


def dataset(directory: str | os.PathLike[str]) -> ds.Dataset:
    """Return the rows committed so far as a dataset, to filter and project while reading.

    Its files stay for some time (``keep`` of the sink) after merging has replaced them.
    """
    listed = describe(directory)
    schema = pa.schema([field.with_nullable(True) for field in listed.schema])
    paths = [os.path.join(directory, file.name) for file in listed.files]
    return ds.dataset(paths, schema=schema, format="parquet")


def read(directory: str | os.PathLike[str]) -> pa.Table:
    """Return the rows committed so far, in the order of their batches.

    >>> import tempfile
    >>> from headwater.sinks import Batch
    >>> from headwater.sinks.parquet import ParquetSink
    >>> directory = tempfile.mkdtemp()
    >>> with ParquetSink(directory, "id BIGINT") as sink:
    ...     _ = sink.begin()
    ...     _ = sink.commit(Batch(0, pa.table({"id": [1, 2]})))
    >>> read(directory).to_pylist()
    [{'id': 1}, {'id': 2}]
    """
    for _ in range(_TRIES):
        try:
            return dataset(directory).to_table()
        except FileNotFoundError as error:  # merged and removed since the manifest was read
            missing = error
    raise SinkUnavailable(
        f'a file of "{os.fspath(directory)}" is missing', detail=str(missing), hint="restore it from a copy"
    )
