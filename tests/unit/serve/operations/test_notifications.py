"""Browsers subscribe to the notifications of a pipeline over HTTP; what is no subscription is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import headwater
from browser_kit import SubscribedBrowser
from headwater import Pipeline, push, targets
from headwater.serve.app import create_app
from headwater.serve.http.served import Served
from headwater.sinks.push import subscriptions
from headwater.sinks.push.subscriptions import PushSubscriptions

AT = "/v1/pipelines/shop/push"
GOOD = SubscribedBrowser("https://fcm.googleapis.com/fcm/send/abc").subscription


@pytest.fixture
def alerting(tmp_path: Path) -> Pipeline:
    shop = Pipeline("shop", log=f"file:{tmp_path}/data")
    shop.source("orders", "id BIGINT, item STRING")

    @shop.sink(targets.push("{item} is out", "mailto:ops@shop.example"))
    def told(orders: Any) -> Any:
        """Whoever wants to know."""
        return orders

    @shop.sink(targets.parquet(tmp_path / "archive"))
    def kept(orders: Any) -> Any:
        """All orders."""
        return orders

    return shop


@pytest.fixture
def client(alerting: Pipeline) -> Iterator[TestClient]:
    quiet = Pipeline("quiet", log=alerting.log)
    served = Served(headwater.open(alerting.log), {"shop": alerting, "quiet": quiet}, {})
    with served, TestClient(create_app(served), base_url="http://127.0.0.1") as client:
        yield client


def endpoints(pipeline: Pipeline) -> list[str]:
    with PushSubscriptions(pipeline.home) as stored:
        return stored.endpoints()


def test_a_browser_gets_the_key_subscribes_and_goes(client: TestClient, alerting: Pipeline) -> None:
    assert client.get(AT).json() == {"key": push.public_key(alerting), "sinks": ["told"]}
    for _ in range(2):
        assert client.post(f"{AT}/subscribe", json=GOOD).json() == {"subscribed": True}
    assert endpoints(alerting) == [GOOD["endpoint"]]
    for _ in range(2):
        gone = client.post(f"{AT}/unsubscribe", json={"endpoint": GOOD["endpoint"]})
        assert gone.json() == {"subscribed": False}
    assert endpoints(alerting) == []


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/pipelines/quiet/push/subscribe", GOOD, 404),
        ("/v1/pipelines/none/push/subscribe", GOOD, 404),
        (f"{AT}/subscribe", {**GOOD, "endpoint": "https://internal.example/"}, 400),
        (f"{AT}/subscribe", {**GOOD, "endpoint": "http://169.254.169.254/latest"}, 400),
        (f"{AT}/subscribe", {**GOOD, "keys": {"p256dh": "A", "auth": "A"}}, 400),
        (f"{AT}/subscribe", [GOOD], 400),
        (f"{AT}/subscribe", {**GOOD, "more": "x" * 20_000}, 413),
        (f"{AT}/unsubscribe", {"endpoint": 7}, 400),
        (f"{AT}/unsubscribe", {}, 400),
    ],
)
def test_what_is_no_subscription_is_refused(
    client: TestClient, alerting: Pipeline, path: str, body: Any, status: int
) -> None:
    answer = client.post(path, json=body)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert endpoints(alerting) == []


def test_when_enough_have_subscribed_the_next_is_told(
    client: TestClient, alerting: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions, "MOST", 1)
    client.post(f"{AT}/subscribe", json=GOOD)
    other = client.post(f"{AT}/subscribe", json={**GOOD, "endpoint": f"{GOOD['endpoint']}d"})
    assert other.status_code == 409 and "no more may" in other.json()["title"]
    assert endpoints(alerting) == [GOOD["endpoint"]]


def test_a_pipeline_without_notifications_has_no_key_and_makes_no_file(client: TestClient) -> None:
    answer = client.get("/v1/pipelines/quiet/push")
    assert answer.status_code == 404 and "targets.push" in answer.json()["hint"]


def test_a_sink_is_told_with_the_kind_of_its_target(client: TestClient) -> None:
    nodes = "/v1/pipelines/shop/nodes"
    told = [client.get(f"{nodes}/{name}").json() for name in ("told", "kept", "orders")]
    assert [each["target"] for each in told] == ["push", "parquet", None]
    assert [each["operations"] for each in told] == [["rebuild"], [], []]
