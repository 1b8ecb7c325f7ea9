"""The URL of a mail server, and addresses of people.

Invariant: a password goes over an encrypted connection, or to this machine, and is never part of a message.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import parse_qs, unquote, urlsplit

from headwater.errors import UsageError

PASSWORD = "HEADWATER_SMTP_PASSWORD"
"""The variable of the environment that has the password, where the URL has none."""
_ADDRESS = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]+@[A-Za-z0-9.-]+")
_HINT = 'write "smtp://user@host:587", or "smtps://host" where it is encrypted from the beginning'
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class MailServer:
    """Where mail is handed over."""

    host: str
    port: int
    encryption: Literal["tls", "starttls", "none"]
    user: str | None = None
    password: str | None = field(default=None, repr=False)


def mail_server(url: str) -> MailServer:
    """Read the URL of a server.

    >>> mail_server("smtp://alerts@mail.example")
    MailServer(host='mail.example', port=587, encryption='starttls', user='alerts')
    """
    try:
        parts = urlsplit(url)
        port, options = parts.port, parse_qs(parts.query, strict_parsing=bool(parts.query))
    except ValueError:
        raise UsageError("mail needs the URL of a server", hint=_HINT) from None
    if parts.scheme not in ("smtp", "smtps") or not parts.hostname or set(options) - {"tls"}:
        raise UsageError("mail needs the URL of a server", hint=_HINT)
    tls = options.get("tls", ["yes"])[0]
    plain = parts.scheme == "smtp" and (tls == "none" or parts.hostname in _LOOPBACK)
    if tls not in ("yes", "none") or (tls == "none" and parts.username and parts.hostname not in _LOOPBACK):
        raise UsageError(
            "a password would go to the mail server unencrypted", hint="leave out tls=none, or the user"
        )
    user = unquote(parts.username) if parts.username else None
    password = unquote(parts.password) if parts.password else None
    return MailServer(
        parts.hostname,
        port or {"smtps": 465}.get(parts.scheme, 587),
        "tls" if parts.scheme == "smtps" else "none" if plain else "starttls",
        user,
        password or (os.environ.get(PASSWORD) if user else None),
    )


def mail_address(text: str, role: str) -> str:
    """Check an address of a person.

    >>> mail_address("ops@shop.example", "recipient")
    'ops@shop.example'
    """
    if not _ADDRESS.fullmatch(text):
        raise UsageError(
            f'"{text}" is no address for a {role} of mail', hint='write "ops@shop.example", without a name'
        )
    return text
