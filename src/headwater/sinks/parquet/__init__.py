"""Parquet files: a node's results as a directory that any tool can read.

``ParquetSink`` writes them, ``read`` and ``dataset`` read what its manifest lists.
"""

from headwater.sinks.parquet.manifest import Manifest
from headwater.sinks.parquet.reading import dataset, describe, read
from headwater.sinks.parquet.sink import ParquetSink

__all__ = ["Manifest", "ParquetSink", "dataset", "describe", "read"]
