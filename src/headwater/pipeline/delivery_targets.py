"""Targets that deliver messages: to programs by webhook, to people by mail and web push.

Their messages wait in an outbox in the home of the pipeline, so a commit waits for no endpoint. Invariant: a
message is sent until it has arrived or is set aside; a batch that comes again, or a rebuild, sends nothing
twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pyarrow as pa

from headwater.names import listed
from headwater.pipeline.sink_target import SinkTarget
from headwater.sinks.delivery.declaration import DeliveryDeclaration
from headwater.sinks.mail.declaration import declare_mail
from headwater.sinks.push.declaration import declare_push
from headwater.sinks.sink import Sink
from headwater.sinks.webhook.declaration import declare_webhook


def webhook(
    url: str,
    secret: str | Sequence[str],
    key: str | tuple[str, ...] = (),
    *,
    retry_timeout: str | timedelta = "1 day",
    concurrency: int = 8,
) -> SinkTarget:
    """Post each row to an endpoint, signed as Standard Webhooks has it, until it has arrived.

    - ``url``: the endpoint: ``"https://shop.example/hook"``. Its query is not shown in messages.
    - ``secret``: ``"whsec_…"``, as the receiver has it; several while one takes the other's place.
    - ``key=()``: the column(s) by which order is kept; without any, rows arrive in any order.
    - ``retry_timeout="1 day"``: how long an endpoint, or one message, may fail before it is set aside.
    - ``concurrency=8``: how many requests are under way at the most, of each key one.

    Out: ``{"type":"insert","timestamp":…,"data":{…}}`` for each row; ``update`` for one whose key is there,
    ``delete`` for one that is ``_deleted``. Its ``webhook-id`` is the same in every attempt. 5xx, 429, 408
    and 425, and no answer, are tried again, with growing waits or as ``Retry-After`` says; any other answer
    but 2xx sets the message aside and whatever its key has next; 410, or ``retry_timeout``, the endpoint.
    ``headwater dead`` shows what is set aside, and redrives it.
    Restart: at least once, with the same id; a batch that comes again, or a rebuild, sends nothing again.

    >>> secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    >>> webhook("https://shop.example/hook", secret, "id").key
    ('id',)
    """
    return _delivering("webhook", declare_webhook(url, secret, key, retry_timeout, concurrency), listed(key))


def mail(
    url: str,
    to: str | Sequence[str],
    subject: str,
    *,
    body: str | None = None,
    sender: str | None = None,
    rate_limit: str = "10 per 10 minutes",
) -> SinkTarget:
    """Send people a mail for each row, and one for many where they come too fast.

    - ``url``: the mail server: ``"smtp://alerts@mail.example:587"`` (STARTTLS), ``"smtps://…"`` (TLS). A
      password that it lacks is ``HEADWATER_SMTP_PASSWORD``. It is not shown in messages.
    - ``to``: an address, or several, each of which gets a mail of its own.
    - ``subject``: with places for columns: ``"{name} has {open} open orders"``.
    - ``body=None``: the text, with places for columns; without it all columns, a line each.
    - ``sender=None``: the address it comes from; without it the user of ``url``.
    - ``rate_limit="10 per 10 minutes"``: what comes beyond that is summed up in one mail, with the count.

    Out: plain text. A row that is ``_deleted`` sends nothing. A subject is one line, whatever a column
    holds. What the server refuses for good is set aside (``headwater dead``), all else is tried again for a
    day.
    Restart: at least once, with the same ``Message-ID``; a batch that comes again, or a rebuild, sends
    nothing.

    >>> mail("smtp://alerts@mail.example", "ops@shop.example", "{item} is out", sender="a@shop.example").name
    'mail'
    """
    return _delivering("mail", declare_mail(url, to, subject, body, sender, rate_limit))


def push(
    title: str,
    contact: str,
    *,
    body: str = "",
    url: str = "",
    rate_limit: str = "10 per 10 minutes",
) -> SinkTarget:
    """Send a notification for each row to the browsers that have subscribed, and one for many.

    - ``title``: one line, with places for columns: ``"{item} is out"``.
    - ``contact``: whom a push service asks if something is wrong: ``"mailto:ops@shop.example"``.
    - ``body=""``: the text, with places for columns.
    - ``url=""``: where a click on it leads, with places for columns.
    - ``rate_limit="10 per 10 minutes"``: what comes beyond that is summed up in one notification, with the
      count.

    Out: ``{"title":…,"body":…,"url":…,"id":…}`` to the service worker of each browser, encrypted for it (RFC
    8291) and signed (VAPID). Browsers subscribe by ``headwater.push``; one that has gone is forgotten. A row
    that is ``_deleted`` sends nothing, and nor does any while nobody has subscribed.
    Restart: at least once, with the same ``id``; a batch that comes again, or a rebuild, sends nothing again.

    >>> push("{item} is out", "mailto:ops@shop.example").name
    'push'
    """
    return _delivering("push", declare_push(title, contact, body, url, rate_limit))


def _delivering(name: str, declaration: DeliveryDeclaration, key: tuple[str, ...] = ()) -> SinkTarget:
    def open(schema: pa.Schema) -> Sink:
        raise NotImplementedError("it is opened in the home of a pipeline")

    return SinkTarget(name, open, key, declaration.shape, delivery=declaration)
