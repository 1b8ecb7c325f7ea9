"""Nodes that share a query: each on its own feet when one fails or is added."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from headwater import Pipeline, latest, scan
from headwater.cli.screens.run_output import summary
from headwater.engine.figures.progress import progress
from headwater.engine.figures.status import Meter
from headwater.engine.proof.verify import verify
from headwater.engine.runner import Runner
from headwater.errors import PipelineError
from headwater.testing.harness import Harness

START = datetime(2026, 1, 1, tzinfo=UTC)
ORDERS = "id BIGINT, who STRING, amount DOUBLE, at TIMESTAMP"


def order(number: int, who: str, amount: float = 1.0) -> dict[str, Any]:
    return {"id": number, "who": who, "amount": amount, "at": START + timedelta(seconds=number)}


def add(state: dict[str, Any] | None, event: dict[str, Any]) -> dict[str, Any]:
    return {"n": (state or {"n": 0})["n"] + 1}


def shop(*names: str, broken: Path | None = None, **more: Any) -> Pipeline:
    """Return a pipeline with some of its nodes; ``careful`` fails while a file is there."""
    pipeline = Pipeline("shop", **more)
    pipeline.source("orders", ORDERS, event_time="at", key="who")

    def counts(orders: DataFrame) -> DataFrame:
        return orders.transform(scan(add, by="who", schema="n BIGINT"))

    def newest(orders: DataFrame) -> DataFrame:
        return orders.transform(latest(by="who"))

    def careful(orders: DataFrame) -> DataFrame:
        flag = str(broken)

        def check(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                if Path(flag).exists() and min(batch["amount"].to_pylist()) < 0:
                    raise ValueError("an amount below nothing")
                yield batch

        return orders.mapInArrow(check, orders.schema).select("id", "amount")

    for each in (counts, newest, careful):
        if each.__name__ in names:
            pipeline.view(key="id" if each is careful else "who")(each)
    return pipeline


def ids(harness: Harness, name: str) -> list[int]:
    return sorted(row["id"] for row in harness.view(name))


@pytest.mark.parametrize("few", [20_000, 0], ids=["in the driver", "in workers"])
def test_nodes_that_start_together_share_one_query(spark: SparkSession, few: int) -> None:
    with (
        mock.patch("headwater.engine.batch.micro_batch.FEW", few),
        Harness(shop("counts", "newest"), spark=spark) as harness,
    ):
        harness.send("orders", [order(n, "ada" if n % 2 else "bob") for n in range(10)])
        harness.advance(START + timedelta(hours=1))
        harness.step()
        assert len(harness._runner.queries) == 1
        assert {row["who"]: row["n"] for row in harness.view("counts")} == {"ada": 5, "bob": 5}
        assert ids(harness, "newest") == [8, 9]
        harness.verify()


def test_a_node_whose_code_fails_leaves_and_the_others_go_on(spark: SparkSession, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.touch()
    with Harness(shop("newest", "careful", broken=broken), spark=spark) as harness:
        harness.send("orders", order(1, "ada"))
        harness.step()
        harness.send("orders", order(2, "bob", -1.0))
        with pytest.raises(PipelineError, match='view "careful" failed on 1 record'):
            harness.step()
        harness.send("orders", order(3, "cyd"))
        with pytest.raises(PipelineError, match='view "careful" failed on 1 record'):
            harness.step()
        assert (ids(harness, "newest"), ids(harness, "careful")) == ([1, 2, 3], [1])
        broken.unlink()
        harness.restart()
        assert len(harness._runner.queries) == 2
        harness.step()
        assert ids(harness, "careful") == [1, 2, 3]
        harness.verify()


def test_a_node_that_has_never_committed_is_not_called_healthy_whatever_it_is_started_with(
    spark: SparkSession, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    broken.touch()
    places = {"log": f"file:{tmp_path / 'log'}", "home": tmp_path / "home"}
    pipeline = shop("newest", "careful", broken=broken, **places)
    for limit in (1000, 1):
        with Runner(pipeline, spark=spark, limit=limit, patient=True) as runner:
            if limit == 1000:
                with runner.log.producer("orders", id="test") as producer:
                    producer.send_batch([order(1, "ada"), order(2, "bob", -1.0)])
            with pytest.raises(PipelineError, match='view "careful" failed on 1 record'):
                runner.catch_up()
            newest, careful = Meter(runner).read()
            assert (newest.begun, newest.lag, careful.begun, careful.lag) == (True, 0, False, 2)
            assert summary(careful) == 'view "careful" has not processed anything yet'
            newest, careful = progress(pipeline, runner.log)
            assert (newest.batch, newest.lag, careful.batch, careful.lag) == (0, 0, None, 2)
            assert verify(runner, "careful").unproved == "it has not processed anything yet"


def test_a_node_whose_query_began_without_it_is_refused_and_rebuilt(
    spark: SparkSession, tmp_path: Path
) -> None:
    def visits(*names: str) -> Pipeline:
        pipeline = shop("newest", log=f"file:{tmp_path / 'log'}", home=tmp_path / "home")
        pipeline.source("clicks", "id BIGINT")
        if "clicked" in names:
            pipeline.sql("clicked", "SELECT id FROM clicks", key="id")
        return pipeline

    with Runner(visits("clicked"), spark=spark, patient=True) as runner:
        runner._take_over()  # and there it is killed
        for topic, rows in (("orders", [order(1, "ada")]), ("clicks", [{"id": 1}, {"id": 2}])):
            with runner.log.producer(topic, id="test") as producer:
                producer.send_batch(rows)
    with Runner(visits(), spark=spark, patient=True) as runner:
        runner.catch_up()
    with Runner(visits("clicked"), spark=spark, patient=True) as runner:
        with pytest.raises(PipelineError, match='view "clicked" has missed some of its input') as caught:
            runner.catch_up()
        assert "headwater rebuild" in (caught.value.hint or "")
        assert [each.lag for each in progress(runner.pipeline, runner.log)] == [0, 2]
        runner.rebuild("clicked")
    with Runner(visits("clicked"), spark=spark, patient=True) as runner:
        runner.catch_up()
        assert runner.store.view("clicked").scan().to_pylist() == [{"id": 1}, {"id": 2}]
        assert verify(runner, "clicked").equal == 2


def test_a_node_that_is_added_later_has_all_of_its_input(spark: SparkSession, tmp_path: Path) -> None:
    places = {"log": f"file:{tmp_path / 'log'}", "home": tmp_path / "home"}
    for names in (("newest",), ("newest", "counts")):
        with Runner(shop(*names, **places), spark=spark, patient=True) as runner:
            with runner.log.producer("orders", id="test") as producer:
                producer.send_batch([order(n, "ada") for n in range(len(names) * 10, len(names) * 10 + 3)])
                producer.mark(START + timedelta(seconds=len(names) * 10 + 5))
            runner.catch_up()
            assert len(runner.queries) == len(names)  # they become one when they run next
            if "counts" in names:
                assert [row["n"] for row in runner.store.view("counts").scan().to_pylist()] == [6]


def test_a_node_that_was_left_out_for_a_while_does_not_go_on_as_if_nothing_had_been(
    spark: SparkSession, tmp_path: Path
) -> None:
    places = {"log": f"file:{tmp_path / 'log'}", "home": tmp_path / "home"}

    def run(number: int, *names: str) -> None:
        with Runner(shop(*names, **places), spark=spark, patient=True) as runner:
            with runner.log.producer("orders", id="test") as producer:
                producer.send(order(number, "ada"))
            runner.catch_up()

    run(1, "newest", "careful")
    run(2, "newest")
    with pytest.raises(PipelineError, match='view "careful" has missed some of its input'):
        run(3, "newest", "careful")


def test_a_source_that_nobody_declares_any_more_is_no_hindrance(spark: SparkSession, tmp_path: Path) -> None:
    def visits(*sources: str) -> Pipeline:
        pipeline = Pipeline("site", log=f"file:{tmp_path / 'log'}", home=tmp_path / "home")
        for name in sources:
            pipeline.source(name, ORDERS, event_time="at")
            pipeline.sql(f"{name}_seen", f"SELECT * FROM {name}", key="id")  # noqa: S608  # a name of ours
        return pipeline

    for number, names in enumerate((("web", "app"), ("web",))):
        with Runner(visits(*names), spark=spark, patient=True) as runner:
            with runner.log.producer("web", id="test") as producer:
                producer.send(order(number, "ada"))
            runner.catch_up()
            assert runner.store.view("web_seen").count() == number + 1
