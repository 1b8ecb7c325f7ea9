"""Who may call a route: the one place where that is decided, for requests and WebSockets alike.

Invariant: a handler runs only if what its route asks for is allowed. A server on an address that others can
reach asks for a token always; one on loopback answers only those who mean it by a name of loopback, so that
no page of a stranger reaches it by a name of its own.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from functools import lru_cache

from starlette.requests import HTTPConnection
from starlette.types import Scope as AsgiScope

from headwater.serve.http.header_fields import HeaderFields
from headwater.serve.http.problem import HttpProblem
from headwater.serve.http.route import Scope
from headwater.serve.security.scopes import allows
from headwater.serve.security.tickets import Tickets
from headwater.serve.security.tokens import AccessToken, TokenStore

CHANGING = ("POST", "PUT", "PATCH", "DELETE")


@dataclass(frozen=True)
class Access:
    """What a server asks of those who call it."""

    tokens: TokenStore | None
    """None: nobody needs a token, which is only so on loopback."""
    loopback: bool
    origins: tuple[str, ...] = ()
    """Origins whose pages may call it."""
    tickets: Tickets = field(default_factory=Tickets)

    def check(self, connection: HTTPConnection, scope: Scope | None, subject: str | None) -> None:
        """Refuse who may not; ``subject`` is the topic or view that a token can be limited to."""
        if self.tokens is None or scope is None:
            return
        token = self.bearer(connection) or self._by_ticket(connection)
        if token is None:
            raise _unknown(connection)
        if not allows(token.scopes, scope, subject):
            wanted = scope if scope == "operate" else f"{scope}:{subject or '*'}"
            raise HttpProblem(403, f'the token does not allow "{wanted:.200}"')

    def required_bearer(self, connection: HTTPConnection) -> AccessToken:
        """Return the token that a request shows by itself, and by no ticket."""
        token = self.bearer(connection)
        if token is None:
            raise _unknown(connection)
        return token

    def bearer(self, connection: HTTPConnection) -> AccessToken | None:
        """Return the token that a request shows by itself."""
        assert self.tokens is not None
        kind, _, text = connection.headers.get("authorization", "").partition(" ")
        return self.tokens.find(text.strip()) if kind.lower() == "bearer" else None

    def _by_ticket(self, connection: HTTPConnection) -> AccessToken | None:
        """Return the token that a ticket stands for; a URL, which others may have seen, changes nothing."""
        assert self.tokens is not None
        if connection.scope["type"] == "http" and connection.scope["method"] in CHANGING:
            return None
        name = self.tickets.token(connection.query_params.get("ticket", ""))
        return None if name is None else self.tokens.named(name)

    def check_origin(self, asked: AsgiScope, fields: HeaderFields) -> None:
        """Refuse a name of the server that is not its own, and pages of others that change something."""
        host = fields.get("host", "")
        if self.loopback and not is_loopback(_name(host)):
            raise HttpProblem(
                421, "this server is not known by that name", hint="call it as localhost or 127.0.0.1"
            )
        origin = fields.get("origin")
        changing = asked["type"] == "websocket" or asked["method"] in CHANGING
        if changing and origin is not None and not self._trusted(origin, host):
            raise HttpProblem(
                403, "a page of another origin may not do this", hint="start the server with --cors ORIGIN"
            )

    def _trusted(self, origin: str, host: str) -> bool:
        return origin in self.origins or origin.partition("://")[2] == host


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Tell whether a name or address is this machine's alone.

    >>> is_loopback("localhost"), is_loopback("::1"), is_loopback("127.0.0.2"), is_loopback("example.org")
    (True, True, True, False)
    """
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _unknown(connection: HTTPConnection) -> HttpProblem:
    """Return the problem of who shows no token, or one that nobody knows: both are told what to do."""
    if "authorization" in connection.headers:
        hint = "it was revoked, or has a slip; `headwater token create` makes a new one"
        return HttpProblem(401, "this token is not known", hint=hint, challenge=True)
    if "ticket" in connection.query_params:
        hint = "it is good for some minutes; POST /v1/tickets gives a new one"
        return HttpProblem(401, "this ticket is not good here, or no longer", hint=hint, challenge=True)
    return HttpProblem(
        401, "a token is required", hint="send it as Authorization: Bearer TOKEN", challenge=True
    )


def _name(host: str) -> str:
    """Return the name of a ``Host`` header, without the port."""
    return host.partition("]")[0] + "]" if host.startswith("[") else host.rpartition(":")[0] or host
