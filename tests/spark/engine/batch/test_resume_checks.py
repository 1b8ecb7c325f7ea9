"""A target that has lost what was committed: its node does not go on as if nothing had been."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from account_kit import handling_bank
from headwater import Pipeline
from headwater.engine.batch.resume_checks import check_partitions
from headwater.engine.runner import Runner
from headwater.errors import HeadwaterError, PipelineError
from headwater.log import Position
from headwater.pipeline import targets

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NODES = ("kept", "copied", "filed", "called")


def shop(path: Path, *names: str) -> Pipeline:
    """Return a pipeline whose nodes write to a topic, an SQLite file, Parquet files and a function."""
    pipeline = Pipeline("shop", log=f"file:{path / 'log'}", home=path / "home")
    pipeline.source("orders", "id BIGINT")

    def kept(orders: DataFrame) -> DataFrame:
        return orders

    def copied(orders: DataFrame) -> DataFrame:
        return orders

    def filed(orders: DataFrame) -> DataFrame:
        return orders

    def called(orders: DataFrame) -> DataFrame:
        return orders

    declared = {
        kept: pipeline.stream(),
        copied: pipeline.sink(targets.sqlite(path / "copy.db", "copied", "id")),
        filed: pipeline.sink(targets.parquet(path / "files")),
        called: pipeline.sink(targets.foreach(lambda rows, number: None)),
    }
    for function, declare in declared.items():
        if function.__name__ in names:
            declare(function)
    return pipeline


def run(spark: SparkSession, path: Path, first: int, *names: str) -> None:
    with Runner(shop(path, *names), spark=spark, patient=True) as runner:
        with runner.log.producer("orders", id="test") as producer:
            producer.send_batch([{"id": first + n} for n in range(100)])
        runner.catch_up()


def test_a_target_that_is_older_than_its_checkpoint_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    run(spark, tmp_path, 0, *NODES)
    shutil.copytree(tmp_path / "files", tmp_path / "saved" / "files")
    shutil.copy(tmp_path / "copy.db", tmp_path / "saved")
    run(spark, tmp_path, 100, *NODES)
    run(spark, tmp_path, 200, "called")  # it cannot know, and goes on
    shutil.rmtree(tmp_path / "files")
    shutil.copytree(tmp_path / "saved" / "files", tmp_path / "files")
    shutil.copy(tmp_path / "saved" / "copy.db", tmp_path / "copy.db")
    for name in ("copied", "filed"):
        with pytest.raises(PipelineError, match=f'sink "{name}" is older than its checkpoint') as caught:
            run(spark, tmp_path, 300, name)
        assert "restored from a backup" in str(caught.value.detail)


def test_a_derived_topic_that_was_deleted_is_missed(spark: SparkSession, tmp_path: Path) -> None:
    run(spark, tmp_path, 0, "kept")
    with Runner(shop(tmp_path, "kept"), spark=spark) as runner:
        runner.log.delete_topic("shop.kept")
    with pytest.raises(HeadwaterError, match='stream "kept" is older than its checkpoint') as caught:
        run(spark, tmp_path, 100, "kept")
    assert "made again under its name" in str(caught.value.detail)


def test_only_a_node_that_relies_on_the_number_of_partitions_is_refused_another(tmp_path: Path) -> None:
    one, two = Position("commands", {0: 7}), Position("commands", {0: 7, 1: 0})
    deciding, copying = handling_bank()["account_replies"], shop(tmp_path, "kept")["kept"]
    check_partitions(deciding, [two], [two])  # type: ignore[arg-type]
    check_partitions(copying, [one], [two])  # type: ignore[arg-type]
    for stands, now in ((one, two), (two, one)):
        with pytest.raises(PipelineError, match="another number of partitions than when stream"):
            check_partitions(deciding, [stands], [now])  # type: ignore[arg-type]
