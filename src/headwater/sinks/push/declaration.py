"""What notifications are declared to say; nothing is opened.

Invariant: a template and a contact that cannot be meant are refused when they are declared.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from headwater.errors import UsageError
from headwater.sinks.delivery.declaration import DeliveryDeclaration
from headwater.sinks.delivery.delivery import Transport
from headwater.sinks.delivery.rate_limit import message_rate
from headwater.sinks.delivery.template import TextTemplate
from headwater.sinks.push.notification_text import NotificationText
from headwater.values.fitting import TargetSchema, shaped

_WHAT = "push notifications"


def declare_push(title: str, contact: str, body: str, url: str, rate_limit: str) -> DeliveryDeclaration:
    """Check what is declared."""
    if not contact.startswith(("mailto:", "https://")) or not contact.isprintable() or " " in contact:
        raise UsageError(
            "push needs a contact, for the push services", hint='write contact="mailto:ops@shop.example"'
        )
    templates = [TextTemplate(text) for text in (title, body, url)]

    def shape(schema: pa.Schema) -> TargetSchema:
        checked = shaped(_WHAT, schema)
        for template in templates:
            template.check(_WHAT, checked.schema.names)
        return checked

    def transport(home: Path) -> Transport:
        from headwater.sinks.push.transport import PushTransport

        return PushTransport(home, contact)

    return DeliveryDeclaration(
        _WHAT,
        shape,
        lambda shape: NotificationText(*templates),
        transport,
        rate_limit=message_rate(rate_limit),
    )
