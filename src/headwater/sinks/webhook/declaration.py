"""What a webhook is declared to send, and where; nothing is connected to.

Invariant: a URL and a secret that cannot be meant are refused when they are declared.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pyarrow as pa

from headwater import durations
from headwater.errors import UsageError
from headwater.names import listed
from headwater.sinks.delivery.declaration import DeliveryDeclaration
from headwater.sinks.delivery.http_client import http_url
from headwater.sinks.delivery.worker import DeliveryPolicy
from headwater.sinks.webhook.body import WebhookBody
from headwater.sinks.webhook.transport import WebhookTransport
from headwater.values.fitting import TargetSchema, shaped
from headwater.values.keyed import declare
from headwater.webhook_signature import signing_keys

_MOST_CONCURRENT = 100


def declare_webhook(
    url: str,
    secret: str | Sequence[str],
    key: str | tuple[str, ...] = (),
    retry_timeout: str | timedelta = "1 day",
    concurrency: int = 8,
) -> DeliveryDeclaration:
    """Check what is declared."""
    parts, keys = http_url(url, "webhook"), signing_keys(secret)
    if not 1 <= concurrency <= _MOST_CONCURRENT:
        raise UsageError(
            f"a webhook cannot have {concurrency} requests under way", hint="concurrency is 1 to 100"
        )
    what = f'webhook "{parts.scheme}://{parts.netloc}{parts.path}"'  # a query may hold a token

    def shape(schema: pa.Schema) -> TargetSchema:
        return declare(what, schema, listed(key)) if key else shaped(what, schema)

    return DeliveryDeclaration(
        what,
        shape,
        WebhookBody,
        lambda home: WebhookTransport(url, keys),
        policy=DeliveryPolicy(
            concurrency=concurrency, retry_timeout=durations.interval(retry_timeout).total_seconds()
        ),
    )
