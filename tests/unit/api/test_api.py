"""What the functions of the public API return and refuse, without Spark."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import headwater
from headwater import Pipeline
from headwater.engine.failure.dead_letters import DeadLetters, RejectedRecord
from headwater.errors import HeadwaterError, PipelineError, UsageError
from headwater.sinks import Batch
from headwater.values.json_ready import JsonReady, calendar_time
from headwater.views import ViewStore

COLUMNS = "id BIGINT, item STRING"


@pytest.fixture
def shop(tmp_path: Path) -> Pipeline:
    """A pipeline whose view holds two rows, as if it had run."""
    made = Pipeline("shop", log=f"file:{tmp_path}/data")
    made.source("orders", COLUMNS)

    @made.view(key="id", on_error="dead_letter")
    def seen(orders):  # type: ignore[no-untyped-def]
        return orders

    with headwater.open(made.log) as log:
        log.create_topic("orders", COLUMNS)
        with log.producer("orders") as producer:
            producer.send_batch([{"id": 1, "item": "tea"}, {"id": 2, "item": "rum"}])
    made.home.mkdir(parents=True)
    with ViewStore(made.home / "views.db") as store, store.sink("seen", COLUMNS, "id") as sink:
        sink.begin()
        sink.commit(Batch(0, pa.table({"id": [1, 2], "item": ["tea", "rum"]})))
    return made


def test_results_are_told_as_json() -> None:
    @dataclass(frozen=True)
    class Told(JsonReady):
        at: datetime
        lasted: timedelta
        error: HeadwaterError
        places: tuple[headwater.Position, ...]
        inner: headwater.Ahead

    told = Told(
        datetime(2026, 1, 2, tzinfo=UTC),
        timedelta(seconds=1.5),
        HeadwaterError("no", detail="because"),
        (headwater.Position("orders", {0: 7}),),
        headwater.Ahead("orders", 0, "till", 2_500_000),
    )
    assert json.loads(json.dumps(told.to_dict())) == {
        "at": "2026-01-02T00:00:00Z",
        "lasted": 1.5,
        "error": "no: because",
        "places": ["orders:0=7"],
        "inner": {"topic": "orders", "partition": 0, "producer": "till", "by": 2.5},
    }


def test_a_time_that_no_calendar_has_is_none() -> None:
    assert calendar_time(1 << 62) is None


def test_a_view_is_compared_with_the_rows_that_it_should_hold(shop: Pipeline) -> None:
    rows = [{"id": 1, "item": "tea"}, {"id": 2, "item": "gin"}, {"id": 3, "item": "ale"}]
    verdict = headwater.compare(shop, "seen", rows)
    assert (verdict.kind, verdict.ok) == ("view", False)
    assert verdict.counts == {"equal": 1, "missing": 1, "extra": 0, "different": 1}
    assert headwater.compare(shop, "seen", [{"id": 1}, {"id": 2}]).ok


@pytest.mark.parametrize(
    "rows", [[{"id": 1, "itm": "tea"}], [{"item": "tea"}], [{"id": 1, "item": "tea"}, {"id": 2}]]
)
def test_a_comparison_leaves_no_column_out_in_silence(shop: Pipeline, rows: list[dict[str, object]]) -> None:
    with pytest.raises(UsageError):
        headwater.compare(shop, "seen", rows)


def test_views_are_opened_by_pipeline_directory_and_file(shop: Pipeline) -> None:
    for place in (shop, shop.home, str(shop.home / "views.db")):
        with headwater.open_views(place) as views:
            assert views["seen"].count() == 2


def test_dead_letters_are_listed_and_appended_again_once(shop: Pipeline) -> None:
    with headwater.open(shop.log) as log:
        DeadLetters(log, "shop", shop.nodes[0]).add([RejectedRecord("orders", 0, 1, "ValueError: no")])
    [letter] = headwater.dead_letters(shop)
    assert (letter.node, letter.topic, letter.offset) == ("seen", "orders", 1)
    assert str(letter.to_dict()["at"]).endswith("Z")
    assert headwater.dead_letters(shop, "seen") == [letter]
    assert (headwater.redrive(shop, "seen"), headwater.redrive(shop, "seen")) == (1, 0)
    with pytest.raises(UsageError, match='source "orders" sets no records aside'):
        headwater.dead_letters(shop, "orders")


def test_what_has_never_run_has_no_status(shop: Pipeline) -> None:
    with pytest.raises(HeadwaterError, match="has not run yet"):
        headwater.status(shop)


def test_only_views_are_rebuilt_and_only_nodes_verified(shop: Pipeline) -> None:
    with pytest.raises(UsageError, match='source "orders" cannot be built anew'):
        headwater.rebuild(shop, "orders")
    with pytest.raises(UsageError, match='source "orders" cannot be built anew'):
        headwater.reset(shop, "orders", "latest")
    with pytest.raises(UsageError, match='source "orders" cannot be verified'):
        headwater.verify(shop, ["orders"])


def test_a_pipeline_that_does_not_fit_together_is_refused_before_spark_starts(tmp_path: Path) -> None:
    broken = Pipeline("broken", log=f"file:{tmp_path}/data")

    @broken.view(key="id")
    def seen(oders):  # type: ignore[no-untyped-def]
        return oders

    for call in (headwater.run, headwater.check, headwater.status, headwater.verify):
        with pytest.raises(PipelineError, match="oders"):
            call(broken)
    assert not (tmp_path / "data").exists()


def test_lateness_judges_what_is_given_and_what_is_declared(tmp_path: Path) -> None:
    shop = Pipeline("shop", log=f"file:{tmp_path}/data")
    shop.source("orders", "at TIMESTAMP", event_time="at", lateness="3 minutes")
    with headwater.open(shop.log) as log:
        log.create_topic("orders", "at TIMESTAMP", event_time="at")
        with log.producer("orders", id="till") as producer:
            for second in (10, 20, 15):
                producer.send_batch([{"at": second * 1_000_000}])
                producer.flush()
        found = headwater.lateness(log, "orders", pipeline=shop, judged=["4 seconds"])
    judged = {each.text: (each.late, each.declared) for each in found.settings}
    assert judged["4 seconds"] == (1, False)
    assert judged["3 minutes"] == (0, True)
    assert found.to_dict()["advice"] == "5 seconds"
