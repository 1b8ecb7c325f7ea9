"""What a token allows, told to who shows it."""

from __future__ import annotations

from pathlib import Path

from headwater import Server, TokenStore
from serve_kit import call, make_log, serving


def test_a_server_that_asks_for_no_token_allows_everything(server: Server) -> None:
    told = call(server.url, "GET", "/v1/permissions").json()
    assert told == {"token": None, "scopes": ["send:*", "read:*", "operate"]}


def test_a_token_is_told_its_scopes_and_a_ticket_nothing(tmp_path: Path) -> None:
    make_log(tmp_path).close()
    tokens = TokenStore(tmp_path / "tokens.json")
    shown = {"Authorization": f"Bearer {tokens.create('desk', ['read:*', 'send:orders'])}"}
    with serving(tmp_path, tokens=tokens.path) as server:
        told = call(server.url, "GET", "/v1/permissions", headers=shown).json()
        ticket = call(server.url, "POST", "/v1/tickets", headers=shown).json()["ticket"]
        by_ticket = call(server.url, "GET", f"/v1/permissions?ticket={ticket}")
        unknown = call(server.url, "GET", "/v1/permissions", headers={"Authorization": "Bearer hw_x"})
        without = call(server.url, "GET", "/v1/permissions")
    assert told == {"token": "desk", "scopes": ["read:*", "send:orders"]}
    assert (by_ticket.status, unknown.status, without.status) == (401, 401, 401)
    assert "not known" in unknown.json()["title"] and "required" in without.json()["title"]
