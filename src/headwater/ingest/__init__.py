"""Ways into the log without a broker, and a feed out of it by UDP.

- ``open(url, topic, log=…)``: StatsD, lines by TCP, syslog, a growing file; ``headwater ingest`` is the same.
- ``open_webhook(name, topic, log=…, settings=…)``: signed deliveries by HTTP; ``webhook_route`` for a server
  of yours, with a ``WebhookReceiver``, ``read_secrets`` and ``Deliveries``.
- ``FeedSender`` and ``Feed``: records by UDP multicast, of which none is lost; ``headwater feed`` sends.
- ``status(log, name)``: how one is doing, in whatever process it runs.

Invariant: what comes in becomes a record, or is counted as what else became of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from headwater.ingest.background import BackgroundIngest
from headwater.ingest.feed.receiver import Feed
from headwater.ingest.feed.sender import FeedSender
from headwater.ingest.ingest import Ingest
from headwater.ingest.opening import IngestSettings, open, open_webhook, status
from headwater.ingest.status import IngestStatus
from headwater.ingest.webhook.settings import WebhookSettings

if TYPE_CHECKING:
    from headwater.ingest.webhook.deliveries import Deliveries
    from headwater.ingest.webhook.receiver import RefusedDelivery, WebhookDelivery, WebhookReceiver
    from headwater.ingest.webhook.route import webhook_route
    from headwater.ingest.webhook.secrets import read_secrets

__all__ = [
    "BackgroundIngest",
    "Deliveries",
    "Feed",
    "FeedSender",
    "Ingest",
    "IngestSettings",
    "IngestStatus",
    "RefusedDelivery",
    "WebhookDelivery",
    "WebhookReceiver",
    "WebhookSettings",
    "open",
    "open_webhook",
    "read_secrets",
    "status",
    "webhook_route",
]

_LATER = {
    "Deliveries": "headwater.ingest.webhook.deliveries",
    "WebhookDelivery": "headwater.ingest.webhook.receiver",
    "RefusedDelivery": "headwater.ingest.webhook.receiver",
    "WebhookReceiver": "headwater.ingest.webhook.receiver",
    "read_secrets": "headwater.ingest.webhook.secrets",
    "webhook_route": "headwater.ingest.webhook.route",
}
"""Names that are looked up when they are used: the command line starts without a server's modules."""


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f'module "headwater.ingest" has no attribute "{name}"')
