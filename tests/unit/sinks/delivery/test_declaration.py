"""Where an outbox is, and that a declaration shows no secret."""

from __future__ import annotations

from pathlib import Path

from delivery_kit import SECRET
from headwater.sinks.delivery.declaration import OutboxPlace
from headwater.sinks.webhook.declaration import declare_webhook


def test_versions_of_a_node_share_its_outbox() -> None:
    assert OutboxPlace(Path("home"), "hooks").file == Path("home/nodes/hooks/outbox.db")


def test_a_declaration_shows_no_secret() -> None:
    declared = declare_webhook("https://shop.example/hook?token=hidden", SECRET)
    assert "hidden" not in repr(declared) and SECRET not in repr(declared)
