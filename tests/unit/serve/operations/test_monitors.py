"""Captures and metrics over HTTP."""

from __future__ import annotations

from starlette.testclient import TestClient


def test_metrics_are_text_for_prometheus(client: TestClient) -> None:
    answer = client.get("/v1/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'headwater_node_up{pipeline="shop",node="seen"} 1' in answer.text


def test_a_pipeline_without_captures_has_none(client: TestClient) -> None:
    assert client.get("/v1/captures").json() == {"captures": []}
