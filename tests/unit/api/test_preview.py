"""The newest records of each source, as nodes will see them."""

from __future__ import annotations

from pathlib import Path

import pytest

import headwater
from headwater import Pipeline
from headwater.errors import UsageError


@pytest.fixture
def web(tmp_path: Path) -> Pipeline:
    pipeline = Pipeline("web", log=f"file:{tmp_path / 'log'}")
    pipeline.source("events", "user STRING, day STRING", event_time="to_timestamp(day)")
    pipeline.table("users", "id BIGINT", key="id")
    with headwater.open(pipeline.log) as log:
        log.create_topic("events", "user STRING, day STRING")
        with log.producer("events") as producer:
            producer.send_batch([{"user": f"u{n}", "day": f"2026-01-0{n}"} for n in range(1, 8)])
            producer.send_batch([{"user": "x", "day": "never"}, {"user": "y", "day": "2026-02-01"}])
    return pipeline


def test_the_newest_records_are_shown_as_declared_and_what_does_not_fit_is_told(web: Pipeline) -> None:
    events, users = headwater.preview(web, rows=3)
    assert [row["user"] for row in events.records.to_pylist()] == ["u7", "y"]
    assert events.records.column("event_time")[0].as_py().isoformat() == "2026-01-07T00:00:00+00:00"
    assert len(events.unreadable) == 1
    assert "day is never" in events.unreadable[0]
    assert (users.exists, users.records.num_rows) == (False, 0)
    assert events.to_dict()["records"][1]["user"] == "y"


def test_a_number_of_rows_that_cannot_be_meant_is_refused(web: Pipeline) -> None:
    with pytest.raises(UsageError):
        headwater.preview(web, rows=0)
