"""What a token allows: to send to a topic, to read views and topics, to operate pipelines.

``send:orders`` and ``read:totals`` name one topic or view, ``send:*`` and ``read:*`` any. ``operate`` is
for those who keep pipelines: it allows to read everything too, but not to send.

Invariant: what no scope of a token allows is refused; a route without a subject needs the scope for all.
"""

from __future__ import annotations

from collections.abc import Iterable

from headwater.errors import UsageError
from headwater.serve.http.route import Scope

ANY = "*"
EVERYTHING = ("send:*", "read:*", "operate")
"""What is allowed where no token is needed."""
_HINT = "write send:TOPIC, read:VIEW, send:*, read:*, or operate"


def checked(scopes: Iterable[str]) -> tuple[str, ...]:
    """Return scopes in order; refuse what is none, and an empty list."""
    given = tuple(dict.fromkeys(scopes))
    for text in given:
        kind, colon, subject = text.partition(":")
        right = text == "operate" or (kind in ("send", "read") and colon and subject)
        if not right or not text.isprintable() or " " in text:
            raise UsageError(f'"{text:.80}" is not a scope', hint=_HINT)
    if not given:
        raise UsageError("a token needs a scope", hint=_HINT)
    return given


def allows(scopes: Iterable[str], needed: Scope, subject: str | None) -> bool:
    """Tell whether scopes allow something, for a topic or view if there is one.

    >>> allows(["send:orders"], "send", "orders"), allows(["read:*"], "read", None), allows([], "read", "a")
    (True, True, False)
    """
    sufficient = {needed if needed == "operate" else f"{needed}:{ANY}"}
    if needed == "read":
        sufficient.add("operate")
    if subject is not None and needed != "operate":
        sufficient.add(f"{needed}:{subject}")
    return not sufficient.isdisjoint(scopes)
