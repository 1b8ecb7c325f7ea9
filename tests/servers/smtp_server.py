"""A real SMTP server on this machine, which keeps the mails that it gets and answers as a test says."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope

from server_process import free_ports

OK = "250 OK"


class Mailbox:
    """What a server has got."""

    def __init__(self) -> None:
        self.mails: list[tuple[list[str], EmailMessage]] = []
        self.answer: Callable[[EmailMessage], str] = lambda mail: OK
        self.logins: list[tuple[str, str]] = []

    def clear(self) -> None:
        self.mails.clear()
        self.answer = lambda mail: OK

    async def handle_DATA(self, server: Any, session: Any, envelope: Envelope) -> str:
        mail = message_from_bytes(bytes(envelope.content or b""), policy=policy.default)  # type: ignore[arg-type]
        assert isinstance(mail, EmailMessage)
        answer = self.answer(mail)
        if answer == OK:
            self.mails.append((list(envelope.rcpt_tos), mail))
        return answer

    def authenticate(self, server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
        login = data.login.decode(), data.password.decode()
        self.logins.append(login)
        return AuthResult(success=login == ("alerts@shop.example", "secret"), handled=False)


@contextmanager
def running_mail_server(tls: ssl.SSLContext | None = None) -> Iterator[tuple[Mailbox, int]]:
    """Start a server; yield what it gets, and its port."""
    box = Mailbox()
    more: dict[str, Any] = {}
    if tls is not None:
        more = {"tls_context": tls, "require_starttls": True, "auth_required": True}
        more["authenticator"] = box.authenticate
    controller = Controller(box, hostname="127.0.0.1", port=free_ports(1)[0], **more)
    controller.start()
    try:
        yield box, controller.port
    finally:
        controller.stop()
