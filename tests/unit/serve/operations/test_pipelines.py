"""Pipelines over HTTP, in the shapes that the dashboard relies on."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient


def test_pipelines_are_listed(client: TestClient) -> None:
    [found] = client.get("/v1/pipelines").json()["pipelines"]
    assert found.pop("noted").endswith("Z")
    assert found == {"name": "shop", "running": True, "nodes": 2}


def test_a_pipeline_has_nodes_captures_and_what_needs_attention(client: TestClient) -> None:
    found = client.get("/v1/pipelines/shop").json()
    assert (found["name"], found["running"], found["captures"]) == ("shop", True, [])
    nodes = {each["name"]: each for each in found["nodes"]}
    assert (nodes["orders"]["kind"], nodes["orders"]["topic"], nodes["orders"]["rate"]) == (
        *("source", "orders"),
        12.5,
    )
    seen = nodes["seen"]
    assert (seen["doc"], seen["upstreams"], seen["key"]) == ("Orders that were seen.", ["orders"], ["id"])
    assert (seen["rows"], seen["used"], seen["view_rows"]) == (200, 174, 2)
    assert seen["clock"] == "2026-01-02T03:04:05Z"
    [late] = found["attention"]
    assert (late["node"], late["severity"], late["since"]) == ("seen", "late", None)


def test_history_is_columns_of_equal_length(client: TestClient) -> None:
    found = client.get("/v1/pipelines/shop/history?node=seen&since=60&points=20").json()
    assert {len(column) for column in found.values()} == {20}
    assert [each for each in found["lag"] if each is not None] == [7]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/pipelines/shpo", 404),
        ("/v1/pipelines/shop/history?node=none", 404),
        ("/v1/pipelines/shop/history?since=-1", 400),
        ("/v1/pipelines/shop/history?since=nan", 400),
        ("/v1/pipelines/shop/history?points=many", 400),
    ],
)
def test_what_there_is_not_and_what_makes_no_sense_is_a_problem(
    client: TestClient, path: str, status: int
) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.json()["status"]) == (status, status)
