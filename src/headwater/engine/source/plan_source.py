"""Plans the micro-batches of a query over all of its inputs at once, and reads nothing.

Spark starts a Python process for every source of a query, and asks each of them before every micro-batch.
So one source stands for all inputs, and its offsets are theirs, by name: a query over twenty topics starts
as soon as one over one. Nodes read what lies between two offsets themselves.

Invariant: an input that is planned no longer keeps its place.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from headwater.engine.source.data_source import StreamReader


class PlanSource(DataSource):
    """The inputs of a query; ``inputs`` has the options of each, by name, as JSON."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "headwater-plan"

    def schema(self) -> str:
        """Return one column, since Spark wants one."""
        return "nothing INT"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        """Return what plans."""
        return OffsetPlanner(json.loads(self.options["inputs"]))


class OffsetPlanner(DataSourceStreamReader):
    """Tells how far a micro-batch goes in each input."""

    def __init__(self, inputs: Mapping[str, Mapping[str, str]]):
        self._readers = {name: StreamReader(options) for name, options in inputs.items()}

    def initialOffset(self) -> dict[str, Any]:
        """Return where a new query begins, in each input."""
        return {name: reader.initialOffset() for name, reader in self._readers.items()}

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        """Plan the next micro-batch; each input has a limit of its own."""
        return {**start, **{name: _next(reader, start.get(name)) for name, reader in self._readers.items()}}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return no tasks."""
        return []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield nothing."""
        return iter(())

    def stop(self) -> None:
        """Release the logs."""
        for reader in self._readers.values():
            reader.stop()


def _next(reader: StreamReader, start: dict[str, Any] | None) -> dict[str, Any]:
    return reader.latestOffset(start or reader.initialOffset(), reader.getDefaultReadLimit())
