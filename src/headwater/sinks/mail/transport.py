"""Hands mail over to a server, each recipient's by itself.

Invariant: a header is made of what was checked, or of one line; its ``Message-ID`` is that of the delivery,
so that a repeat is known as one; a password is in no reason that is told.
"""

from __future__ import annotations

import smtplib
import ssl
import threading
from collections.abc import Sequence
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate

import orjson

from headwater.sinks.delivery.delivery import DELIVERED, Outcome, OutgoingDelivery
from headwater.sinks.delivery.template import one_line
from headwater.sinks.mail.server_address import MailServer

_SECONDS = 30.0


class MailTransport:
    """Sends mail through one server, over one connection that is kept."""

    def __init__(self, server: MailServer, sender: str, to: Sequence[str]):
        self._server, self._sender, self._to = server, sender, list(to)
        self._connection: smtplib.SMTP | None = None
        self._lock = threading.Lock()

    def send(self, delivery: OutgoingDelivery) -> Outcome:
        """Hand one message over."""
        assert delivery.recipient is not None, "each recipient has a delivery"
        message = mail_message(delivery, self._sender, delivery.recipient)
        with self._lock:
            try:
                self._connected().send_message(message, self._sender, [delivery.recipient])
                return DELIVERED
            except (smtplib.SMTPException, OSError) as error:
                self._disconnect()
                return mail_outcome(error)

    def recipients(self) -> list[str]:
        """Return the addresses."""
        return self._to

    def close(self) -> None:
        """End the connection."""
        with self._lock:
            self._disconnect()

    def _connected(self) -> smtplib.SMTP:
        """Return a connection that answers."""
        if self._connection is not None:
            try:
                if self._connection.noop()[0] == 250:
                    return self._connection
            except (smtplib.SMTPException, OSError):
                pass
            self._disconnect()
        self._connection = self._connect()
        return self._connection

    def _connect(self) -> smtplib.SMTP:
        server, context = self._server, ssl.create_default_context()
        connection: smtplib.SMTP = (
            smtplib.SMTP_SSL(server.host, server.port, timeout=_SECONDS, context=context)
            if server.encryption == "tls"
            else smtplib.SMTP(server.host, server.port, timeout=_SECONDS)
        )
        try:
            if server.encryption == "starttls":
                connection.starttls(context=context)
            if server.user is not None:
                connection.login(server.user, server.password or "")
        except BaseException:
            connection.close()
            raise
        return connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def mail_message(delivery: OutgoingDelivery, sender: str, to: str) -> EmailMessage:
    """Return the mail of a delivery."""
    said, message = orjson.loads(delivery.body), EmailMessage(policy=SMTP)
    message["From"], message["To"], message["Subject"] = sender, to, one_line(said["subject"])
    message["Date"], message["Message-ID"] = formatdate(usegmt=True), f"<{delivery.id}@headwater.invalid>"
    message["Auto-Submitted"] = "auto-generated"  # so that nobody's absence answers it
    message.set_content(said["text"])
    return message


def mail_outcome(error: Exception) -> Outcome:
    """Tell what an error means: 5xx is for good, all else may pass.

    >>> mail_outcome(smtplib.SMTPDataError(554, b"no")).result, mail_outcome(TimeoutError()).result
    ('refused', 'retry')
    """
    if isinstance(error, smtplib.SMTPAuthenticationError):  # of no message: mended where the password is
        return Outcome("retry", f"the server refuses the login ({error.smtp_code})")
    code = None
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        code = next(iter(error.recipients.values()))[0]
    elif isinstance(error, smtplib.SMTPResponseException):
        code = error.smtp_code
    if code is None:
        what = "no answer in time" if isinstance(error, TimeoutError) else type(error).__name__
        return Outcome("retry", f"the mail server cannot be used ({what})")
    of_this_mail = isinstance(
        error, smtplib.SMTPSenderRefused | smtplib.SMTPRecipientsRefused | smtplib.SMTPDataError
    )
    return Outcome("refused" if code >= 500 and of_this_mail else "retry", f"the mail server answers {code}")
