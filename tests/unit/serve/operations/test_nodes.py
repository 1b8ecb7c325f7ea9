"""A node over HTTP, in full, and the rows that it has set aside."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from figures_kit import set_aside
from headwater import Pipeline

NODE = "/v1/pipelines/shop/nodes"


def test_a_node_has_its_source_and_rows_that_add_up(client: TestClient) -> None:
    found = client.get(f"{NODE}/seen").json()
    assert "def seen(orders" in found["source"]
    assert (found["file"], found["downstreams"]) == ("figures_kit.py", [])
    assert found["accounting"] == {"rows": 200, "used": 174, "late": 20, "duplicates": 5, "dead": 1}
    assert (found["lateness"], found["deliveries"]) == (None, None)


def test_a_source_has_a_histogram_of_lateness(client: TestClient) -> None:
    found = client.get(f"{NODE}/orders").json()
    assert found["downstreams"] == ["seen", "copies"]
    assert sum(found["lateness"]["counts"]) == 2


def test_rows_that_were_set_aside_are_told_with_how_many_there_are(
    client: TestClient, shop: Pipeline
) -> None:
    set_aside(shop, "no number", "no item")
    found = client.get(f"{NODE}/seen/dead?limit=1").json()
    assert (found["count"], [each["error"] for each in found["records"]]) == (2, ["no item"])
    assert client.get(f"{NODE}/seen/late").json() == {"records": [], "count": 0}


@pytest.mark.parametrize(
    ("path", "status"),
    [("/none", 404), ("/none/late", 404), ("/orders/dead", 409), ("/seen/dead?limit=0", 400)],
)
def test_what_there_is_not_is_a_problem(client: TestClient, path: str, status: int) -> None:
    assert client.get(NODE + path).status_code == status
