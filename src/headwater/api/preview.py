"""A few records of each source, as its nodes will see them: whether a declaration fits what is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headwater.api.subject import Subject, pipeline_of
from headwater.errors import UnreadableRecord, UsageError
from headwater.log import Log, Position
from headwater.log.open import open as open_log
from headwater.pipeline.declaration import InputTopic
from headwater.values.json_ready import JsonReady


@dataclass(frozen=True)
class SourcePreview(JsonReady):
    """The newest records of a source or a table."""

    source: str
    topic: str
    records: pa.Table
    unreadable: tuple[str, ...]
    """What is wrong with records that do not fit what is declared, one sentence each."""
    exists: bool = True
    """Whether the topic is there: else it is made when the pipeline runs."""

    def facts(self) -> dict[str, Any]:
        """Return it with the records as objects."""
        return {**super().facts(), "records": self.records.to_pylist()}


def preview(pipeline: Subject, *, rows: int = 5) -> list[SourcePreview]:
    """Return a few of the newest records of every source and table, as nodes will see them.

    - ``pipeline``: the pipeline, or the path of its file.
    - ``rows=5``: how many of each partition at the most.

    Columns, event time and key are as they are declared, computed ones too. A record that does not fit is
    told with the reason: it would stop a node, or become a dead letter. Nothing is written, and Spark is not
    started.

    >>> import headwater
    >>> shop = headwater.Pipeline("shop", log="memory:")
    >>> _ = shop.source("orders", "id BIGINT")
    >>> headwater.preview(shop)[0].exists
    False
    """
    if type(rows) is not int or rows < 1:
        raise UsageError(f"a preview has 1 row or more, not {rows!r:.60}")
    found = pipeline_of(pipeline)
    with open_log(found.log) as log:
        present = {topic.name for topic in log.topics()}
        return [_preview(log, each, rows, each.topic in present) for each in found.input_topics]


def _preview(log: Log, declared: InputTopic, count: int, exists: bool) -> SourcePreview:
    schema = declared.declared.read_schema
    if not exists:
        return SourcePreview(declared.name, declared.topic, schema.empty_table(), (), exists=False)
    log.read_as(declared.declared)
    batches, unreadable = list[pa.RecordBatch](), list[str]()
    begin, end = (log.resolve(declared.topic, to) for to in ("earliest", "latest"))
    for partition, last in end.offsets.items():
        first = max(begin.offsets[partition], last - count)
        while first < last:
            start, first = Position(declared.topic, {partition: first}, end.id), last
            try:
                for batch in log.read(declared.topic, partition, start, end):
                    batches.append(batch.select(schema.names))
            except UnreadableRecord as error:
                unreadable.append(f"{error.message}: {error.detail}")
                first = error.offset + 1
    records = pa.Table.from_batches(batches).cast(schema) if batches else schema.empty_table()
    return SourcePreview(declared.name, declared.topic, records, tuple(unreadable))
