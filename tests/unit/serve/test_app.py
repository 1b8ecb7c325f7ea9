"""The application as a whole."""

from __future__ import annotations

from headwater import Server
from serve_kit import call


def test_the_description_is_served_and_a_wrong_method_is_told_the_right_ones(server: Server) -> None:
    described = call(server.url, "GET", "/v1/openapi.json").json()
    assert "/v1/views/{view}/{key}" in described["paths"]
    wrong = call(server.url, "DELETE", "/v1/views/stock")
    assert wrong.status == 405 and "GET" in wrong.headers["allow"]
    assert wrong.headers["content-type"] == "application/problem+json"


def test_head_is_answered_without_a_body(server: Server) -> None:
    answer = call(server.url, "HEAD", "/v1/views/stock")
    assert (answer.status, answer.body) == (200, b"") and answer.headers["etag"]
