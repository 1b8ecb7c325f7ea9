"""Who may call a server: tokens and their scopes, names of the server, pages of strangers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater import Server, TokenStore
from headwater.serve.app import ROUTES
from serve_kit import EVENT, call, make_log, make_views, serving


@pytest.fixture(scope="module")
def tokens(root: Path) -> TokenStore:
    return TokenStore(root / "tokens.json")


@pytest.fixture(scope="module")
def guarded(root: Path, tokens: TokenStore) -> Iterator[Server]:
    make_log(root).close()
    tokens.create("first", ["operate"])
    with make_views(root), serving(root, tokens=tokens.path) as server:
        yield server


def shown(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_no_route_but_health_answers_without_a_token(guarded: Server) -> None:
    for route in ROUTES:
        path = "/v1" + route.path.replace("{key:path}", "a").replace("{topic}", "orders").replace(
            "{view}", "stock"
        )
        for headers in ({}, shown("hw_wrong"), {"Authorization": "Basic eDp5"}):
            answer = call(guarded.url, route.method, path, EVENT if route.body else None, headers)
            open_to_all = route.path in ("/health", "/ready")
            assert answer.status == (200 if open_to_all else 401), route.path
            assert "wrong" not in answer.body.decode()


def test_a_token_allows_what_its_scopes_say_and_nothing_after_it_is_revoked(
    guarded: Server, tokens: TokenStore
) -> None:
    send = tokens.create("send", ["send:orders"])
    assert call(guarded.url, "POST", "/v1/topics/orders", EVENT, shown(send)).status == 200
    assert call(guarded.url, "POST", "/v1/topics/prices", EVENT, shown(send)).status == 403
    assert call(guarded.url, "GET", "/v1/views/stock", headers=shown(send)).status == 403
    assert call(guarded.url, "GET", "/v1/views", headers=shown(send)).status == 403
    tokens.revoke("send")
    assert call(guarded.url, "POST", "/v1/topics/orders", EVENT, shown(send)).status == 401


def test_a_ticket_stands_for_its_token_in_a_url(guarded: Server, tokens: TokenStore) -> None:
    read = tokens.create("read", ["read:stock"])
    ticket = call(guarded.url, "POST", "/v1/tickets", headers=shown(read)).json()["ticket"]
    assert call(guarded.url, "GET", f"/v1/views/stock?ticket={ticket}").status == 200
    assert call(guarded.url, "GET", f"/v1/views?ticket={ticket}").status == 403
    tokens.revoke("read")
    assert call(guarded.url, "GET", f"/v1/views/stock?ticket={ticket}").status == 401


def test_a_ticket_neither_changes_anything_nor_gets_another(guarded: Server, tokens: TokenStore) -> None:
    both = tokens.create("both", ["send:orders", "read:*"])
    ticket = call(guarded.url, "POST", "/v1/tickets", headers=shown(both)).json()["ticket"]
    assert call(guarded.url, "GET", f"/v1/views?ticket={ticket}").status == 200
    assert call(guarded.url, "POST", f"/v1/topics/orders?ticket={ticket}", EVENT).status == 401
    assert call(guarded.url, "POST", f"/v1/tickets?ticket={ticket}").status == 401


def test_a_name_that_is_not_of_loopback_is_refused(server: Server) -> None:
    port = server.url.rpartition(":")[2]
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "", "[::2]:80"):
        assert call(server.url, "GET", "/v1/health", headers={"Host": host}).status == 421, host
    for host in ("localhost", f"localhost:{port}", f"127.0.0.1:{port}", "[::1]:80"):
        assert call(server.url, "GET", "/v1/health", headers={"Host": host}).status == 200, host


def test_pages_of_strangers_send_nothing(server: Server) -> None:
    own = server.url
    for origin, status in (("https://evil.example", 403), ("null", 403), ("http://[", 403), (own, 200)):
        assert call(server.url, "POST", "/v1/topics/orders", EVENT, {"Origin": origin}).status == status, (
            origin
        )
