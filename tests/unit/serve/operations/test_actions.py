"""Operations over HTTP: begun, asked for, and refused with what to do."""

from __future__ import annotations

import time
from typing import Any

import pytest
from starlette.testclient import TestClient

import headwater
from figures_kit import set_aside
from headwater import Pipeline

NODE = "/v1/pipelines/shop/nodes"


def ended(client: TestClient, begun: Any) -> Any:
    assert begun.status_code == 202
    path, deadline = f"/v1/operations/{begun.json()['operation']}", time.monotonic() + 120
    while (found := client.get(path).json())["state"] == "running" and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


def test_a_redrive_appends_what_was_set_aside_once(client: TestClient, shop: Pipeline) -> None:
    set_aside(shop, "no number", "no item")
    for records in (2, 0):
        found = ended(client, client.post(f"{NODE}/seen/redrive"))
        assert (found["state"], found["kind"], found["target"]) == ("done", "redrive", "shop/seen")
        assert found["result"] == {"records": records}
    operations = client.get("/v1/operations").json()["operations"]
    assert [each["result"]["records"] for each in operations] == [0, 2], "the newest first"


def test_a_group_is_moved(client: TestClient, shop: Pipeline) -> None:
    with headwater.open(shop.log) as log:
        log.seek("billing", "orders", "earliest")
    found = ended(client, client.post("/v1/topics/orders/groups/billing/seek", json={"to": "latest"}))
    assert found["result"] == {"position": "orders:0=2"}
    found = ended(client, client.post("/v1/topics/orders/groups/billing/seek", json={"to": 9}))
    assert found["state"] == "failed" and found["error"]["message"]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        (f"{NODE}/none/verify", None, 404),
        (f"{NODE}/orders/verify", None, 409),
        (f"{NODE}/copies/rebuild", None, 409),
        (f"{NODE}/copies/reset", {"to": "latest"}, 409),
        (f"{NODE}/seen/reset", {"to": True}, 400),
        (f"{NODE}/seen/reset", {"to": "no position"}, 400),
        (f"{NODE}/seen/reset", ["latest"], 400),
        ("/v1/topics/none/groups/billing/seek", {"to": "latest"}, 404),
        ("/v1/topics/orders/groups/none/seek", {"to": "latest"}, 404),
        ("/v1/topics/orders/groups/none/seek", {"to": "x" * 20_000}, 413),
    ],
)
def test_what_cannot_be_done_is_refused_before_it_begins(
    client: TestClient, path: str, body: Any, status: int
) -> None:
    answer = client.post(path, json=body)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert client.get("/v1/operations").json() == {"operations": []}


def test_an_operation_that_there_is_not_is_a_problem(client: TestClient) -> None:
    assert client.get("/v1/operations/none").status_code == 404
