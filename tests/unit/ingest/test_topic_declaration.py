"""Topics that a way in writes to."""

from __future__ import annotations

import pytest

import headwater
from headwater.errors import TopicError
from headwater.ingest.topic_declaration import declare_topic


def test_a_topic_is_made_and_one_with_more_columns_is_taken_as_it_is() -> None:
    with headwater.open("memory:") as log:
        assert declare_topic(log, "new", "at TIMESTAMP, id BIGINT", key="id", event_time="at").key == ("id",)
        log.create_topic("old", "id BIGINT, more STRING", partitions=2)
        assert declare_topic(log, "old", "id BIGINT").partitions == 2


def test_a_topic_without_a_column_is_refused() -> None:
    with headwater.open("memory:") as log:
        log.create_topic("old", "id STRING")
        with pytest.raises(TopicError, match='no column "id" of type BIGINT'):
            declare_topic(log, "old", "id BIGINT")
