"""The description fits the specification, and says of each route what the router has."""

from __future__ import annotations

from headwater.serve.app import ROUTES
from headwater.serve.http.openapi import describe


def test_every_route_is_described_with_its_path_parameters() -> None:
    described = describe(ROUTES)
    assert described["openapi"] == "3.1.0"
    for path, methods in described["paths"].items():
        for operation in methods.values():
            named = {each["name"] for each in operation["parameters"] if each["in"] == "path"}
            assert named == {part[1:-1] for part in path.split("/") if part.startswith("{")}
            assert "default" in operation["responses"]


def test_a_server_that_asks_for_tokens_says_so() -> None:
    post = describe(ROUTES, tokens=True)["paths"]["/v1/topics/{topic}"]["post"]
    assert post["security"] == [{"token": []}]
    assert "security" not in describe(ROUTES)["paths"]["/v1/topics/{topic}"]["post"]
    assert "security" not in describe(ROUTES, tokens=True)["paths"]["/v1/health"]["get"]
