"""What every log does alike: arguments are checked and defaults filled in before a backend is asked."""

from __future__ import annotations

from typing import Any, cast

import pytest

from headwater import topic as topics
from headwater.errors import TopicExists, UnknownTopic, UsageError
from headwater.log.interface import Log
from headwater.log.position import Position


def test_a_topic_declared_again_is_returned_and_another_of_its_name_refused(log: Log) -> None:
    assert log.create_topic("t", "n INT", partitions=2) == log.topic("t")
    for changed in ({"schema": "n BIGINT"}, {"partitions": 3}, {"key": "n"}):
        with pytest.raises(TopicExists):
            log.create_topic("t", **{"schema": "n INT", "partitions": 2, **changed})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "ask",
    [
        lambda log: log.read("t", partition=2),
        lambda log: log.read("t", start="first"),
        lambda log: log.read("t", start=-1),
        lambda log: log.read("t", start=True),
        lambda log: log.read("t", end=Position("other", {0: 1})),
        lambda log: log.appended_ranges("t", -1, 0),
        lambda log: log.producer("t", id=""),
        lambda log: log.producer("t", id="x" * 201),
        lambda log: log.lag("nobody"),
        lambda log: log.delete_group("nobody"),
    ],
)
def test_an_argument_that_cannot_be_meant_is_refused_at_the_call(log: Log, ask: Any) -> None:
    with pytest.raises(UsageError):
        ask(log)
    assert log.groups() == []


def test_a_seek_to_a_position_moves_only_the_partitions_that_it_names(log: Log) -> None:
    log.seek("g", "t", "latest")
    assert log.seek("g", "t", Position("t", {1: 2})).offsets == {1: 2}
    assert {each.partition: each.committed for each in log.lag("g")} == {0: 5, 1: 2}
    with pytest.raises(UsageError, match='no group "f"') as refused:
        log.lag("f")
    assert refused.value.hint == "groups: g"


def test_no_log_is_made_without_a_backend_and_none_reads_an_unknown_topic(log: Log) -> None:
    with pytest.raises(TypeError, match="abstract"):
        cast(Any, Log)()
    with pytest.raises(UnknownTopic):
        log.read("tt")


@pytest.mark.parametrize("formats", [{"format": "csv"}, {"key": "id", "key_format": "csv"}])
def test_a_log_of_typed_rows_reads_no_other_format(log: Log, formats: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="this log keeps typed rows") as refused:
        log.read_as(topics.create("orders", "id INT, n INT", **formats))  # type: ignore[arg-type]
    assert refused.value.hint == "leave it out, and send rows"
