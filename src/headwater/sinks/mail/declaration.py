"""What mail is declared to say, and to whom; nothing is connected to.

Invariant: an address, a server and a template that cannot be meant are refused when they are declared.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.errors import UsageError
from headwater.sinks.delivery.declaration import DeliveryDeclaration
from headwater.sinks.delivery.rate_limit import message_rate
from headwater.sinks.delivery.template import TextTemplate
from headwater.sinks.delivery.worker import DeliveryPolicy
from headwater.sinks.mail.mail_text import MailText, every_column
from headwater.sinks.mail.server_address import mail_address, mail_server
from headwater.sinks.mail.transport import MailTransport
from headwater.values.fitting import TargetSchema, shaped


def declare_mail(
    url: str,
    to: str | Sequence[str],
    subject: str,
    body: str | None,
    sender: str | None,
    rate_limit: str,
) -> DeliveryDeclaration:
    """Check what is declared."""
    server = mail_server(url)
    recipients = [mail_address(each, "recipient") for each in ([to] if isinstance(to, str) else to)]
    if not recipients:
        raise UsageError("mail needs a recipient", hint='write to="ops@shop.example"')
    if sender is None and (server.user is None or "@" not in server.user):
        raise UsageError("mail needs a sender", hint='write sender="alerts@shop.example"')
    origin = mail_address(sender or server.user or "", "sender")
    what = f'mail to "{", ".join(recipients)}"'

    def shape(schema: pa.Schema) -> TargetSchema:
        checked = shaped(what, schema)
        for text in filter(None, (subject, body)):
            TextTemplate(text).check(what, checked.schema.names)
        return checked

    def composer(shape: TargetSchema) -> MailText:
        text = every_column(shape.schema.names) if body is None else TextTemplate(body)
        return MailText(shape, TextTemplate(subject), text)

    return DeliveryDeclaration(
        what,
        shape,
        composer,
        lambda home: MailTransport(server, origin, recipients),
        rate_limit=message_rate(rate_limit),
        policy=DeliveryPolicy(concurrency=1),
    )
