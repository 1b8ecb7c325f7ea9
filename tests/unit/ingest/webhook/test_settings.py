"""What can be chosen for a webhook."""

from __future__ import annotations

from headwater.ingest.webhook.settings import WebhookSettings


def test_a_webhook_listens_on_this_machine_alone_unless_it_is_asked_to() -> None:
    assert WebhookSettings("env:HOOK").listen.startswith("127.0.0.1:")
