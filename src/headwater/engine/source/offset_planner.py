"""Plans the micro-batches of a query over all of its inputs at once, and reads nothing.

What planning needs is imported by those who plan: Spark has two more processes that only look at the source.

Invariant: an input that is planned no longer keeps its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from headwater.engine.source.data_source import StreamReader


class OffsetPlanner(DataSourceStreamReader):
    """Tells how far a micro-batch goes in each input."""

    def __init__(self, inputs: Mapping[str, Mapping[str, str]]):
        self._inputs = inputs

    @cached_property
    def _readers(self) -> dict[str, StreamReader]:
        from headwater.engine.source.data_source import StreamReader

        return {name: StreamReader(options) for name, options in self._inputs.items()}

    def read_ahead(self, starts: Mapping[str, str]) -> None:
        """Begin to read inputs from positions on; what fails then is raised when it is asked for."""
        for name, start in starts.items():
            with suppress(HeadwaterError):
                self._readers[name].read_ahead(start)

    def initialOffset(self) -> dict[str, Any]:
        """Return where a new query begins, in each input."""
        return {name: reader.initialOffset() for name, reader in self._readers.items()}

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        """Plan the next micro-batch; each input has a limit of its own."""
        return {**start, **{name: _next(reader, start.get(name)) for name, reader in self._readers.items()}}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return no tasks."""
        return []

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield nothing."""
        return iter(())

    def stop(self) -> None:
        """Release the logs."""
        for reader in self._readers.values():
            reader.stop()


def _next(reader: StreamReader, start: dict[str, Any] | None) -> dict[str, Any]:
    return reader.latestOffset(start or reader.initialOffset(), reader.getDefaultReadLimit())
