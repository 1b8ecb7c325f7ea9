"""What needs Spark is done by a child of the server, beside a pipeline that may run: the real one."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from starlette.testclient import TestClient

import headwater
from headwater.serve.app import create_app
from headwater.serve.http.served import Served
from headwater.serve.operations.child import answer

FILE = """
from headwater import Pipeline

child_shop = Pipeline("shop", log="file:{log}")
child_shop.source("orders", "id BIGINT")
child_shop.sql("seen", "SELECT * FROM orders", key="id")
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "child_shop.py"
    path.write_text(FILE.replace("{log}", str(tmp_path / "data")))
    shop = headwater.load(path)
    with headwater.open(shop.log) as log:
        log.create_topic("orders", "id BIGINT")
        with log.producer("orders") as producer:
            producer.send_batch([{"id": number} for number in range(10)])
    return path


def ended(client: TestClient, begun: Any) -> Any:
    assert begun.status_code == 202
    path, deadline = f"/v1/operations/{begun.json()['operation']}", time.monotonic() + 120
    while (found := client.get(path).json())["state"] == "running" and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def test_a_view_is_rebuilt_and_verified_over_http_while_its_pipeline_runs(
    spark: SparkSession, file: Path
) -> None:
    shop, nodes = headwater.load(file), "/v1/pipelines/shop/nodes"
    headwater.run(shop, until_caught_up=True)
    with headwater.run(shop):
        served = Served(headwater.open(shop.log), {"shop": shop}, {"shop": headwater.open_views(shop)})
        with served, TestClient(create_app(served), base_url="http://127.0.0.1") as client:
            begun = client.post(f"{nodes}/seen/rebuild")
            assert client.post(f"{nodes}/seen/verify").status_code == 409, "one at a time"
            rebuilt = ended(client, begun)
            assert (rebuilt["state"], rebuilt["result"]) == ("done", {"view": "seen", "version": 2})
            verified = ended(client, client.post(f"{nodes}/seen/verify"))
            assert (verified["result"]["ok"], verified["result"]["equal"]) == (True, 10)


def test_a_file_that_declares_another_log_by_now_is_refused(file: Path) -> None:
    asked = {
        "file": str(file),
        "pipeline": "shop",
        "home": "elsewhere",
        "log": "file:other",
        "kind": "verify",
    }
    told = answer({**asked, "node": "seen", "to": None})
    assert "another log or home" in told["error"]["message"]
    assert answer({**asked, "pipeline": "none"})["error"]["message"]
