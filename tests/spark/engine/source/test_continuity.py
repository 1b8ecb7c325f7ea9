"""Inputs that no longer hold what a node reads next: it stops, says so, and nothing is skipped in silence."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import headwater
from headwater import Pipeline
from headwater.errors import InputLost, PipelineError
from headwater.testing.harness import Harness


def numbers(first: int, last: int) -> list[dict[str, Any]]:
    return [{"id": number} for number in range(first, last)]


@pytest.fixture
def ids() -> Pipeline:
    pipeline = Pipeline("ids")
    pipeline.source("numbers", "id BIGINT")
    pipeline.source("others", "id BIGINT")

    @pipeline.stream()
    def even(numbers: DataFrame) -> DataFrame:
        return numbers.filter("id % 2 = 0")

    @pipeline.view(key="id")
    def stored(even: DataFrame) -> DataFrame:
        return even

    @pipeline.view(key="id")
    def healthy(others: DataFrame) -> DataFrame:
        return others

    return pipeline


def made_again(harness: Harness, topic: str, **settings: Any) -> None:
    schema = harness.log.topic(topic).schema
    harness.log.delete_topic(topic)
    harness.log.create_topic(topic, schema, **settings)


def test_a_topic_made_again_under_its_name_is_not_read_on(ids: Pipeline, spark: SparkSession) -> None:
    with Harness(ids, spark=spark) as harness:
        harness.send("numbers", numbers(0, 10))
        harness.step()
        made_again(harness, "numbers")
        harness.send("numbers", numbers(100, 130), producer="another")
        harness.send("others", numbers(0, 3))
        message = 'topic "numbers" is not the one that stream "even" has read'
        with pytest.raises(InputLost, match=message) as told:
            harness.step()
        assert told.value.hint is not None and "another name" in told.value.hint
        harness.restart()
        with pytest.raises(InputLost, match="is not the one"):
            harness.step()
        assert len(harness.view("stored")) == 5
        assert len(harness.view("healthy")) == 3  # no other node waits for it


def test_a_derived_topic_made_again_is_not_read_on(ids: Pipeline, spark: SparkSession) -> None:
    with Harness(ids, spark=spark) as harness:
        harness.send("numbers", numbers(0, 20))
        harness.step()
        harness.restart()
        made_again(harness, "ids.even")
        harness.send("numbers", numbers(20, 60))
        with pytest.raises(PipelineError):
            harness.step()
        assert len(harness.view("stored")) == 10


@pytest.mark.parametrize("there", [30, 30_000])
def test_what_retention_took_is_one_clear_error(ids: Pipeline, spark: SparkSession, there: int) -> None:
    with Harness(ids, spark=spark) as harness:
        harness.send("numbers", numbers(0, 10))
        harness.step()
        harness.log.alter_topic("numbers", retention_bytes=1)
        with headwater.open(harness.pipeline.log, segment_bytes=100) as log:
            for first in (10, 110):
                with log.producer("numbers") as producer:
                    producer.send_batch(numbers(first, first + there))
            log.compact("numbers")
        left = harness.log.resolve("numbers", "earliest").offsets[0]
        assert left > 10, "nothing was removed"
        message = f'{left - 10:,} records of topic "numbers" that stream "even" has not read are gone'
        with pytest.raises(InputLost, match=message):
            harness.step()
