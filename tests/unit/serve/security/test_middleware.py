"""What every answer carries, and who is told it."""

from __future__ import annotations

from pathlib import Path

from headwater import Server
from serve_kit import call, make_log, serving

ORIGIN = "https://shop.example"


def test_every_answer_keeps_browsers_from_guessing_and_framing(server: Server) -> None:
    for path in ("/v1/health", "/v1/nothing", "/nothing", "/v1/views/none"):
        headers = call(server.url, "GET", path).headers
        assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "access-control-allow-origin" not in headers and "server" not in headers


def test_a_page_of_a_named_origin_may_call(tmp_path: Path) -> None:
    make_log(tmp_path).close()
    with serving(tmp_path, origins=(ORIGIN,)) as server:
        for origin, told in ((ORIGIN, ORIGIN), ("https://evil.example", None)):
            answer = call(server.url, "GET", "/v1/health", headers={"Origin": origin})
            assert answer.headers.get("access-control-allow-origin") == told
        before = {"Origin": ORIGIN, "Access-Control-Request-Method": "POST"}
        preflight = call(server.url, "OPTIONS", "/v1/topics/orders", headers=before)
        assert (
            preflight.status == 204 and "idempotency-key" in preflight.headers["access-control-allow-headers"]
        )
        assert call(server.url, "POST", "/v1/topics/orders", {"id": 1}, {"Origin": ORIGIN}).status == 200
