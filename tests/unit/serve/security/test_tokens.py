"""Tokens: shown once, kept as a hash, gone when they are revoked."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from headwater import TokenStore
from headwater.errors import HeadwaterError, UsageError


def test_a_token_is_known_until_it_is_revoked_by_any_store(tmp_path: Path) -> None:
    path = tmp_path / "serve" / "tokens.json"
    server, other = TokenStore(path), TokenStore(path)
    assert server.find("hw_x") is None
    text = other.create("shop", ["send:orders"])
    known = server.find(text)
    assert known is not None and known.scopes == ("send:orders",)
    assert server.find(text[:-1]) is None and server.find("") is None and server.find("\udcff") is None
    other.revoke("shop")
    assert server.find(text) is None


def test_no_token_is_in_the_file_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    store = TokenStore(tmp_path / "tokens.json")
    text = store.create("shop", ["read:*"])
    assert text not in store.path.read_text() and text[3:] not in store.path.read_text()
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert "digest" not in store.tokens()[0].to_dict()


def test_names_are_used_once(tmp_path: Path) -> None:
    store = TokenStore(tmp_path / "tokens.json")
    store.create("shop", ["read:*"])
    with pytest.raises(UsageError):
        store.create("shop", ["read:*"])
    with pytest.raises(HeadwaterError):
        store.create("a b", ["read:*"])
    with pytest.raises(UsageError) as missing:
        store.revoke("shp")
    assert missing.value.hint == 'did you mean "shop"?'


def test_a_file_that_cannot_be_read_lets_nobody_in(tmp_path: Path) -> None:
    store = TokenStore(tmp_path / "tokens.json")
    text = store.create("shop", ["read:*"])
    store.path.write_text("{}")
    with pytest.raises(HeadwaterError):
        store.find(text)
