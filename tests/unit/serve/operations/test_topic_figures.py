"""Topics over HTTP: a list, one in full, and how late its rows come."""

from __future__ import annotations

from starlette.testclient import TestClient


def test_topics_are_listed_with_their_sizes(client: TestClient) -> None:
    [orders] = client.get("/v1/topics").json()["topics"]
    assert (orders["name"], orders["records"], orders["partitions"]) == ("orders", 2, 1)
    assert (orders["event_time"], orders["compacted"], orders["pipeline_of"]) == ("at", False, ["shop"])


def test_a_topic_tells_of_its_partitions_and_producers(client: TestClient) -> None:
    found = client.get("/v1/topics/orders").json()
    assert [each["end"] for each in found["partitions"]] == [2]
    assert [each["producer"] for each in found["producers"]] == ["till"]
    assert found["groups"] == []


def test_lateness_is_a_report_with_a_histogram(client: TestClient) -> None:
    found = client.get("/v1/topics/orders/lateness").json()
    assert (found["rows"], sum(found["counts"])) == (2, 2)
    assert "1 second" in {each["lateness"] for each in found["settings"] if each["declared"]}


def test_a_topic_that_there_is_not_is_a_problem(client: TestClient) -> None:
    for path in ("", "/lateness"):
        assert client.get(f"/v1/topics/none{path}").status_code == 404
