"""``headwater token``: made, listed, revoked."""

from __future__ import annotations

import json

from tests.unit.cli.conftest import Run

from headwater import Log


def test_a_token_is_printed_once_and_listed_without_itself(run: Run, log: Log) -> None:
    log.create_topic("orders", "id BIGINT")
    text = run("token", "create", "shop", "--scope", "send:orders", "--scope", "read:*").stdout.strip()
    assert text.startswith("hw_")
    listed = run("token", "list", "--format", "ndjson").stdout
    assert json.loads(listed)["scopes"] == "send:orders read:*" and text not in listed
    run("token", "revoke", "shop")
    assert "no tokens" in run("token", "list").stderr
    assert "no token" in run("token", "revoke", "shop").stderr


def test_what_is_no_scope_is_refused(run: Run, log: Log) -> None:
    log.create_topic("orders", "id BIGINT")
    assert "not a scope" in run("token", "create", "shop", "--scope", "all").stderr
