"""What a target is before its rows are known."""

from __future__ import annotations

from headwater.pipeline.sink_target import SinkTarget, TableName
from headwater.sinks.foreach import ForeachSink


def test_a_target_without_a_database_has_no_tables() -> None:
    assert SinkTarget("mine", lambda schema: ForeachSink(print)).table_names() == []


def test_prefixes_overlap_where_one_begins_as_the_other() -> None:
    assert TableName("cache", "a:", True).overlaps(TableName("cache", "a:b:", True))
    assert not TableName("cache", "a:").overlaps(TableName("cache", "a:b:"))
    assert not TableName("one", "a").overlaps(TableName("two", "a"))
