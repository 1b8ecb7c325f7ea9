"""A real run, whose figures another process reads; and rows that add up through restarts."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import headwater
from headwater import Accounting

FILE = """
from pyspark.sql import DataFrame, functions as F
from pyspark.sql.types import LongType
from headwater import Pipeline, agg, dedup, windows

shop = Pipeline("shop", log="file:{log}")
shop.source("orders", "id BIGINT, amount STRING, at TIMESTAMP", event_time="at")
number = F.udf(lambda text: int(text), LongType(), useArrow=False)


@shop.stream(on_error="dead_letter")
def numbers(orders: DataFrame) -> DataFrame:
    return orders.withColumn("amount", number("amount"))


@shop.stream(on_error="dead_letter")
def unique(orders: DataFrame) -> DataFrame:
    return orders.withColumn("amount", number("amount")).transform(dedup(on="id", within="1 hour"))


@shop.view(key="window_start")
def totals(orders: DataFrame) -> DataFrame:
    return orders.transform(windows.tumbling("1 minute", shown=agg.count()))
"""
READER = """
import json, sys
import headwater
found = headwater.overview(sys.argv[1])
history = headwater.history(sys.argv[1], "orders", since=60, points=60)
print(json.dumps({"overview": found.to_dict(), "history": history.to_dict()}))
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "shop.py"
    path.write_text(FILE.replace("{log}", str(tmp_path / "data")))
    return path


def order(id: int, amount: str, minute: int) -> dict[str, Any]:
    return {"id": id, "amount": amount, "at": minute * 60_000_000}


def send(file: Path, *rows: dict[str, Any]) -> None:
    shop = headwater.load(file)
    with headwater.open(shop.log) as log:
        log.create_topic("orders", "id BIGINT, amount STRING, at TIMESTAMP", event_time="at")
        with log.producer("orders", id="till") as producer:
            producer.send_batch(list(rows))


def accounting(file: Path) -> dict[str, Accounting]:
    return {each.name: each.accounting for each in headwater.overview(file).nodes}


def read_elsewhere(file: Path) -> Any:
    command = [sys.executable, "-c", READER, str(file)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def test_rows_in_are_used_late_duplicate_or_dead_through_restarts(spark: SparkSession, file: Path) -> None:
    send(file, order(1, "5", 100), order(1, "5", 100), order(2, "no", 100))
    headwater.run(file, until_caught_up=True)
    send(file, order(3, "no", 100), order(4, "7", 1), order(1, "5", 100))
    headwater.run(file, until_caught_up=True)
    found = accounting(file)
    assert found["orders"] == Accounting(rows=6)
    assert found["numbers"] == Accounting(rows=6, dead=2, out=4)
    assert found["unique"] == Accounting(rows=6, late=1, duplicates=2, dead=2, out=1)
    assert (found["totals"].rows, found["totals"].late, found["totals"].used) == (6, 1, 5)
    headwater.run(file, until_caught_up=True)
    assert accounting(file) == found, "a run without rows counts nothing"


def test_another_process_reads_the_figures_of_a_run(spark: SparkSession, file: Path) -> None:
    send(file, *(order(number, "5", 100) for number in range(50)))
    with headwater.run(headwater.load(file)) as work:
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            statuses = work.statuses()
            if statuses and all(each.rows == 50 and each.state == "running" for each in statuses):
                break
            time.sleep(0.2)
        time.sleep(1.5)  # figures are noted each second
        found = read_elsewhere(file)
    nodes = {each["name"]: each for each in found["overview"]["nodes"]}
    assert found["overview"]["running"]
    assert {name: (each["state"], each["rows"]) for name, each in nodes.items()} == dict.fromkeys(
        ("orders", "numbers", "unique", "totals"), ("running", 50)
    )
    assert any(rate is not None for rate in found["history"]["rate"])
    after = read_elsewhere(file)["overview"]
    assert not after["running"]
    assert {each["state"] for each in after["nodes"]} == {"stopped"}
