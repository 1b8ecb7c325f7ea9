"""Whole pipelines over the harness: operators, derived streams, late rows, restarts, and the proof."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headwater import Pipeline, dedup, latest, scan
from headwater.engine.home.lease import Lease
from headwater.engine.proof.verify import verify
from headwater.engine.runner import Runner
from headwater.errors import Fenced, HeadwaterError, PipelineError
from headwater.pipeline import targets
from headwater.sinks.parquet import read
from headwater.testing.harness import Harness
from headwater.views import open_views

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(seconds: int) -> datetime:
    return NOON + timedelta(seconds=seconds)


def add(state: dict[str, Any] | None, event: dict[str, Any]) -> dict[str, Any]:
    before = state or {"n": 0, "total": 0.0}
    return {"n": before["n"] + 1, "total": before["total"] + event["amount"]}


ALL = ("unique", "totals", "newest", "moves", "large")


def shop(*wanted: str) -> Pipeline:
    """Return a pipeline with some of its nodes, or all."""
    pipeline = Pipeline("shop")
    schema = "id BIGINT, who STRING, amount DOUBLE, at TIMESTAMP"
    pipeline.source("orders", schema, event_time="at", key="who")
    wanted = wanted or ALL
    for kind, node in (("stream", unique), ("view", totals), ("view", newest), ("stream", moves)):
        if node.__name__ in wanted:
            getattr(pipeline, kind)(key="who")(node)
    if "large" in wanted:
        pipeline.sql("large", "SELECT id, who, amount FROM unique WHERE amount >= 5", key="id")
    return pipeline


def unique(orders: DataFrame) -> DataFrame:
    """Each order once."""
    return orders.transform(dedup(on="id", within="1 hour"))


def totals(orders: DataFrame) -> DataFrame:
    """What each has spent so far."""
    folded = orders.transform(scan(add, by="who", schema="n BIGINT, total DOUBLE"))
    return folded.withColumn("mean", F.col("total") / F.col("n"))


def newest(orders: DataFrame) -> DataFrame:
    """The last order of each."""
    return orders.transform(latest(by="who"))


def moves(orders: DataFrame) -> DataFrame:
    """Each order that was the last one of its customer for a while."""
    return orders.transform(latest(by="who"))


@pytest.fixture
def harness(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[Harness]:
    with Harness(shop(*getattr(request, "param", ())), spark=spark, limit=5) as harness:
        yield harness


def only(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("harness", [names], indirect=True, ids=[" ".join(names)])


def order(number: int, who: str, amount: float, seconds: int) -> dict[str, Any]:
    return {"id": number, "who": who, "amount": amount, "at": at(seconds)}


def test_a_pipeline_keeps_its_views_and_streams_right(harness: Harness) -> None:
    harness.send("orders", [order(1, "ada", 1, 10), order(2, "bob", 5, 30), order(1, "ada", 1, 10)])
    harness.send("orders", [order(3, "ada", 2, 20), order(4, "ada", 7, 40), order(5, "bob", 9, 50)])
    harness.advance(at(45))
    harness.step()
    assert sorted(row["id"] for row in harness.stream("unique")) == [1, 2, 3, 4, 5]
    totals = {row["who"]: (row["n"], row["total"], row["mean"]) for row in harness.view("totals")}
    assert totals == {"ada": (4, 11.0, 2.75), "bob": (1, 5.0, 5.0)}
    assert {row["who"]: row["id"] for row in harness.view("newest")} == {"ada": 4, "bob": 5}
    assert {row["id"] for row in harness.view("large")} == {2, 4, 5}
    harness.verify()


@only("totals")
def test_a_late_row_is_kept_apart_and_the_proof_knows_it(harness: Harness) -> None:
    harness.send("orders", order(1, "ada", 1, 100))
    harness.advance(at(101))
    harness.step()
    harness.send("orders", order(2, "ada", 2, 50))
    harness.advance(at(200))
    harness.step()
    assert [row["id"] for row in harness.late("totals")] == [2]
    assert [(row["n"], row["total"]) for row in harness.view("totals")] == [(1, 1.0)]
    harness.verify()


@only("totals")
def test_a_runner_that_was_replaced_begins_no_late_rows(harness: Harness) -> None:
    harness.send("orders", order(1, "ada", 1, 100))
    harness.advance(at(101))
    harness.step()
    Lease(harness.pipeline.home).take()  # the other has begun with late rows of its own
    harness.send("orders", order(2, "ada", 2, 50))
    with pytest.raises(Fenced, match="another runner has taken over"):
        harness.step()
    assert harness.late("totals") == []


@only("unique", "totals")
def test_a_restart_goes_on_where_it_was(harness: Harness) -> None:
    harness.send("orders", [order(n, "ada", 1, n) for n in range(6)])
    harness.advance(at(3))
    harness.step()
    harness.restart()
    harness.send("orders", [order(n, "ada", 1, n) for n in range(5, 12)])
    harness.advance(at(100))
    harness.step()
    assert [row["n"] for row in harness.view("totals")] == [13]
    assert sorted(row["id"] for row in harness.stream("unique")) == list(range(12))
    harness.verify()


@only("newest")
def test_a_wrong_view_is_found(harness: Harness) -> None:
    harness.send("orders", [order(1, "ada", 1, 10), order(2, "bob", 5, 30)])
    harness.step()
    store: Any = harness._runner.store.of("newest")  # type: ignore[attr-defined]
    with store._writer.transaction() as db:
        db.execute(f"DELETE FROM {store.view('newest')._entry().tables.rows}")  # noqa: S608
    with pytest.raises(HeadwaterError, match="is not what a batch"):
        harness.verify()


@only("unique")
def test_an_edit_that_the_state_cannot_survive_is_refused(harness: Harness, spark: SparkSession) -> None:
    harness.send("orders", order(1, "ada", 1, 10))
    harness.step()
    changed = Pipeline("shop", log=harness.pipeline.log, home=harness.pipeline.home)
    changed.source("orders", "id BIGINT, who STRING, amount DOUBLE, at TIMESTAMP", event_time="at", key="who")

    @changed.stream(key="who")
    def unique(orders: DataFrame) -> DataFrame:
        return orders.transform(dedup(on="id", within="2 hours"))

    with Runner(changed, spark=spark) as runner:
        with pytest.raises(PipelineError, match="has changed: its operator's settings") as caught:
            runner.catch_up()
        assert "give the stream another name" in (caught.value.hint or "")


@only("totals")
def test_another_fold_is_refused_until_its_view_is_rebuilt(harness: Harness, spark: SparkSession) -> None:
    harness.send("orders", [order(1, "ada", 1, 10), order(2, "ada", 5, 30)])
    harness.advance(at(40))
    harness.step()
    harness.restart()
    harness.step()  # what has not been edited goes on
    changed = Pipeline("shop", log=harness.pipeline.log, home=harness.pipeline.home)
    changed.source("orders", "id BIGINT, who STRING, amount DOUBLE, at TIMESTAMP", event_time="at", key="who")
    rate = 2

    def add(state: dict[str, Any] | None, event: dict[str, Any]) -> dict[str, Any]:
        before = state or {"n": 0, "total": 0.0}
        return {"n": before["n"] + 1, "total": before["total"] + rate * event["amount"]}

    add.__qualname__ = "add"

    @changed.view(key="who")
    def totals(orders: DataFrame) -> DataFrame:
        folded = orders.transform(scan(add, by="who", schema="n BIGINT, total DOUBLE"))
        return folded.withColumn("mean", F.col("total") / F.col("n"))

    with Runner(changed, spark=spark, patient=True) as runner:
        with pytest.raises(PipelineError, match="has changed: its operator's settings") as caught:
            runner.catch_up()
        assert "headwater rebuild test_runner.py totals" in (caught.value.hint or "")
        assert runner.store.view("totals").get("ada") == {
            "who": "ada",
            "at": at(30),
            "n": 2,
            "total": 6.0,
            "mean": 3.0,
        }
        runner.rebuild("totals")
        assert runner.store.view("totals").get("ada") == {
            "who": "ada",
            "at": at(30),
            "n": 2,
            "total": 12.0,
            "mean": 6.0,
        }
    with Runner(changed, spark=spark, patient=True) as runner:
        assert verify(runner, "totals").equal == 1


@only("newest")
def test_a_rebuild_lets_an_edit_through(harness: Harness, spark: SparkSession) -> None:
    harness.send("orders", [order(1, "ada", 1, 10), order(2, "bob", 5, 30)])
    harness.step()
    changed = Pipeline("shop", log=harness.pipeline.log, home=harness.pipeline.home)
    changed.source("orders", "id BIGINT, who STRING, amount DOUBLE, at TIMESTAMP", event_time="at", key="who")

    @changed.view(key="id")
    def newest(orders: DataFrame) -> DataFrame:
        return orders.transform(latest(by="id"))

    with Runner(changed, spark=spark, patient=True) as runner:
        runner.rebuild("newest")
        assert [row["id"] for row in runner.store.view("newest").scan().to_pylist()] == [1, 2]
    with Runner(changed, spark=spark, patient=True) as runner:
        assert verify(runner, "newest").ok


@only("totals")
def test_a_view_is_rebuilt_beside_the_old_one_and_reset_to_a_place(harness: Harness) -> None:
    harness.send("orders", order(1, "ada", 1, 100))
    harness.advance(at(101))
    harness.step()
    harness.send("orders", order(2, "ada", 2, 50))  # late, the first time
    harness.advance(at(200))
    harness.step()
    assert [row["n"] for row in harness.view("totals")] == [1]
    middle = harness.log.resolve("orders", "latest")
    harness.rebuild("totals")
    assert [row["n"] for row in harness.view("totals")] == [2]
    harness.send("orders", order(3, "ada", 2, 300))
    harness.advance(at(400))
    harness.step()
    assert [row["n"] for row in harness.view("totals")] == [3]
    harness.verify()
    harness.reset("totals", middle)
    assert harness.view("totals") == []
    harness.step()
    assert [row["n"] for row in harness.view("totals")] == [1]
    harness.verify()


@only("unique")
def test_a_stream_cannot_be_rebuilt_and_says_so(harness: Harness) -> None:
    with pytest.raises(HeadwaterError, match='stream "unique" cannot be built anew'):
        harness.rebuild("unique")


def test_sinks_get_every_row_once(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = Pipeline("out")
    pipeline.source("orders", "id BIGINT, amount DOUBLE")
    seen: list[int] = []

    @pipeline.sink(targets.parquet(tmp_path / "orders"))
    def archived(orders: DataFrame) -> DataFrame:
        return orders

    @pipeline.sink(targets.sqlite(tmp_path / "orders.db", "orders", "id"))
    def kept(orders: DataFrame) -> DataFrame:
        return orders.filter("amount > 1")

    @pipeline.sink(targets.foreach(lambda rows, batch: seen.extend(rows["id"].to_pylist())))
    def told(orders: DataFrame) -> DataFrame:
        return orders

    with Harness(pipeline, spark=spark) as harness:
        for first in (0, 5):
            harness.send("orders", [{"id": n, "amount": float(n)} for n in range(first, first + 5)])
            harness.step()
            harness.restart()
    assert sorted(read(tmp_path / "orders")["id"].to_pylist()) == list(range(10))
    with open_views(tmp_path / "orders.db") as views:
        assert [row["id"] for row in views["orders"].scan().to_pylist()] == list(range(2, 10))
    assert sorted(set(seen)) == list(range(10))


def test_a_key_that_is_deleted_from_a_table_leaves_view_and_stream(spark: SparkSession) -> None:
    pipeline = Pipeline("people")
    pipeline.table("customers", "id BIGINT, name STRING", key="id")

    @pipeline.stream(key="id")
    def shouted(customers: DataFrame) -> DataFrame:
        return customers.withColumn("name", F.upper("name"))

    @pipeline.view(key="id")
    def known(shouted: DataFrame) -> DataFrame:
        return shouted

    with Harness(pipeline, spark=spark) as harness:
        harness.send("customers", [{"id": 1, "name": "ada"}, {"id": 2, "name": "bob"}])
        harness.step()
        harness.delete("customers", 1)
        harness.send("customers", {"id": 2, "name": "bo"})
        harness.step()
        assert harness.view("known") == [{"id": 2, "name": "BO"}]
        assert [(each.kind, each.key) for each in harness.changes("known")] == [
            ("insert", (1,)),
            ("insert", (2,)),
            ("delete", (1,)),
            ("update", (2,)),
        ]
        harness.verify()


def test_after_a_restart_an_input_with_nothing_new_does_not_hold_time_back(spark: SparkSession) -> None:
    pipeline = Pipeline("two")
    for name in ("left", "right"):
        pipeline.source(name, "who STRING, amount DOUBLE, at TIMESTAMP", event_time="at")

    @pipeline.view(key="who")
    def totals(left: DataFrame, right: DataFrame) -> DataFrame:
        return left.unionByName(right).transform(scan(add, by="who", schema="n BIGINT, total DOUBLE"))

    with Harness(pipeline, spark=spark) as harness:
        harness.send("left", [{"who": "ada", "amount": 1, "at": at(60)}, {"who": "ada", "at": at(100)}])
        harness.send("right", {"who": "ada", "amount": 2, "at": at(50)})
        harness.step()
        harness.restart()
        harness.send("right", {"who": "ada", "amount": 4, "at": at(200)})  # left stands at 100, as before
        harness.step()
        assert [(row["n"], row["total"]) for row in harness.view("totals")] == [(2, 3.0)]
        harness.verify()


def test_rows_that_were_late_are_left_out_of_the_proof_without_changing_the_order(
    spark: SparkSession,
) -> None:
    pipeline = Pipeline("late")
    schema = "id BIGINT, n BIGINT, notes MAP<STRING, BIGINT>, at TIMESTAMP"
    pipeline.source("orders", schema, key="id", event_time="at")

    def sent(key: int, n: int, seconds: int) -> dict[str, Any]:
        return {"id": key, "n": n, "notes": {"n": n, "one": 1}, "at": at(seconds)}

    @pipeline.view(key="id")
    def unique(orders: DataFrame) -> DataFrame:
        return orders.transform(dedup(on="id", within="1 second"))

    with Harness(pipeline, spark=spark) as harness:
        for n in range(30):  # of each id the last to arrive counts, which is not the newest
            harness.send(
                "orders", [{"id": key, "n": n, "at": at(100 + (n * 7 % 31) * 10)} for key in range(3)]
            )
        harness.advance(at(1000))
        harness.step()
        harness.send("orders", sent(1, 99, 3))
        harness.step()
        assert [row["n"] for row in harness.late("unique")] == [99]
        assert [(row["id"], row["n"]) for row in harness.view("unique")] == [(0, 29), (1, 29), (2, 29)]
        harness.verify()
