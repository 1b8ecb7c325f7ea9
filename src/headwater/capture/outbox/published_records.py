"""The records of an outbox's topic, read for whose they are: the header ``row`` names the row of each.

Invariant: only what a capture itself has written counts: others may write to the topic too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from headwater.capture.state import Offsets
from headwater.log import Log, Position
from headwater.pipeline.captured import ROW


@dataclass(frozen=True)
class PublishedRecords:
    """Records of one partition, one behind the other."""

    partition: int
    end: int
    """The offset behind them."""
    names: list[bytes]
    """The names of their rows, as ``row_names`` makes them."""


def published_records(
    log: Log, topic: str, since: Offsets, producers: tuple[str, ...]
) -> Iterator[PublishedRecords]:
    """Yield what some producers have written behind some offsets, as far as it is kept."""
    earliest, end = log.resolve(topic, "earliest"), log.resolve(topic, "latest")
    start = {
        number: min(max(since.get(number, 0), first), end.offsets[number])
        for number, first in earliest.offsets.items()
    }
    for batch in log.read(topic, start=Position(topic, start, end.id), end=end, meta=True):
        if len(batch):
            yield _published(batch, producers)


def published_names(log: Log, topic: str, since: Offsets, producers: tuple[str, ...]) -> set[bytes]:
    """Return the names of all rows that some producers have published behind some offsets."""
    return {name for part in published_records(log, topic, since, producers) for name in part.names}


def _published(batch: pa.RecordBatch, producers: tuple[str, ...]) -> PublishedRecords:
    own = pc.is_in(batch.column("_producer"), pa.array(producers))
    names = pc.map_lookup(batch.column("_headers").filter(own), pa.scalar(ROW), "first")
    last = len(batch) - 1
    return PublishedRecords(
        batch.column("_partition")[0].as_py(),
        batch.column("_offset")[last].as_py() + 1,
        names.drop_null().to_pylist(),
    )
