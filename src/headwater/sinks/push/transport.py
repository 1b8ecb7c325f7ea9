"""Hands notifications to the push services of browsers.

Invariant: each browser gets a message that only it can read; one that has gone away is forgotten.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import orjson

from headwater.sinks.delivery.delivery import DELIVERED, Outcome, OutgoingDelivery
from headwater.sinks.delivery.http_client import HttpAnswer, HttpClient, HttpFailure
from headwater.sinks.push.encryption import encrypted, vapid_header
from headwater.sinks.push.subscriptions import PushSubscription, PushSubscriptions

_SECONDS = 86_400
"""For how long a push service keeps a message for a browser that is away."""
_GONE = (404, 410)
_TRANSIENT = frozenset({408, 425, 429})


class PushTransport:
    """Sends to every browser that has subscribed in a pipeline's home."""

    def __init__(self, home: Path, contact: str, client: HttpClient | None = None):
        self._subscriptions, self._contact = PushSubscriptions(home), contact
        self._client = client or HttpClient()
        self._secret = self._subscriptions.secret()

    def send(self, delivery: OutgoingDelivery) -> Outcome:
        """Send one notification to one browser."""
        assert delivery.recipient is not None, "each browser has a delivery"
        to = self._subscriptions.find(delivery.recipient)
        if to is None:  # it has unsubscribed since
            return DELIVERED
        try:
            answer = self._post(to, delivery)
        except HttpFailure as failure:
            return Outcome("retry", str(failure))
        except ValueError:
            return Outcome("refused", "the key of the browser is no point of its curve")
        if answer.status in _GONE:
            self._subscriptions.unsubscribe(to.endpoint)
            return DELIVERED
        return push_outcome(answer)

    def recipients(self) -> list[str]:
        """Return the browsers that have subscribed now."""
        return self._subscriptions.endpoints()

    def close(self) -> None:
        """Close connections and file."""
        self._client.close()
        self._subscriptions.close()

    def _post(self, to: PushSubscription, delivery: OutgoingDelivery) -> HttpAnswer:
        message = orjson.dumps({**orjson.loads(delivery.body), "id": delivery.id})
        headers = {
            "content-type": "application/octet-stream",
            "content-encoding": "aes128gcm",
            "ttl": str(_SECONDS),
            "urgency": "high",
            # A repeat that waits at the service takes the place of the first.
            "topic": hashlib.sha256(delivery.id.encode()).hexdigest()[:32],
            "authorization": vapid_header(to.endpoint, self._secret, self._contact),
        }
        return self._client.post(to.endpoint, encrypted(message, to), headers)


def push_outcome(answer: HttpAnswer) -> Outcome:
    """Tell what an answer of a push service means.

    >>> [push_outcome(HttpAnswer(status)).result for status in (201, 503, 429, 413)]
    ['delivered', 'retry', 'retry', 'refused']
    """
    if 200 <= answer.status < 300:
        return DELIVERED
    may_pass = answer.status >= 500 or answer.status in _TRANSIENT
    reason = f"the push service answers {answer.status}"
    return Outcome("retry" if may_pass else "refused", reason, answer.retry_after)
