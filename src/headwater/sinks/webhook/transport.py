"""Sends webhooks, and tells by the answer what becomes of them.

Invariant: a message that an endpoint has acknowledged with 2xx is not sent again; only what a later attempt
can mend is tried again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from headwater.sinks.delivery.delivery import DELIVERED, Outcome, OutgoingDelivery
from headwater.sinks.delivery.http_client import HttpAnswer, HttpClient, HttpFailure
from headwater.webhook_signature import signed_headers

_TRANSIENT = frozenset({408, 425, 429})
"""Answers below 500 that a later attempt may mend."""


class WebhookTransport:
    """Posts messages to one endpoint, signed."""

    def __init__(self, url: str, keys: Sequence[bytes], client: HttpClient | None = None):
        self._url, self._keys, self._client = url, keys, client or HttpClient()

    def send(self, delivery: OutgoingDelivery) -> Outcome:
        """Post a message; its timestamp is that of the attempt, as receivers refuse old ones."""
        headers = signed_headers(self._keys, delivery.id, int(time.time()), delivery.body)
        headers |= {"content-type": "application/json", "user-agent": "headwater"}
        try:
            return webhook_outcome(self._client.post(self._url, delivery.body, headers))
        except HttpFailure as failure:
            return Outcome("retry", str(failure))

    def recipients(self) -> None:
        """There is one endpoint."""
        return

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def webhook_outcome(answer: HttpAnswer) -> Outcome:
    """Tell what an answer means.

    >>> [webhook_outcome(HttpAnswer(status)).result for status in (204, 503, 429, 400, 301, 410)]
    ['delivered', 'retry', 'retry', 'refused', 'refused', 'gone']
    """
    if 200 <= answer.status < 300:
        return DELIVERED
    reason = f"the endpoint answers {answer.status}"
    if answer.status == 410:
        return Outcome("gone", reason)
    if answer.status >= 500 or answer.status in _TRANSIENT:
        return Outcome("retry", reason, answer.retry_after)
    return Outcome("refused", reason)
