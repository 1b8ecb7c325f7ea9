"""Where an index is: the URL of a server and the name of the index.

Invariant: who connects is known to the connection alone; what is shown of an address has no user and no
password.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

from headwater.errors import UsageError

_TLS = {"opensearch": False, "elasticsearch": False, "http": False,
        "opensearch+https": True, "elasticsearch+https": True, "https": True}  # fmt: skip
_INDEX = re.compile(r"[a-z0-9][a-z0-9._+-]{0,199}")
_FORM = 'write "opensearch://host:9200/index", or "opensearch+https://…"'


@dataclass(frozen=True)
class Address:
    """A server, an index there, and who connects."""

    host: str
    port: int
    tls: bool
    index: str
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)


def is_server(url: str) -> bool:
    """Tell whether a URL means a server, and not a directory."""
    return urlsplit(url).scheme in _TLS


def parse(url: str) -> Address:
    """Return what a URL means.

    >>> parse("opensearch://shop:secret@search.example:9200/customers")
    Address(host='search.example', port=9200, tls=False, index='customers')
    """
    parts = urlsplit(url)
    if parts.scheme not in _TLS or not parts.hostname:
        raise UsageError("search has no URL of a server", hint=_FORM)
    index = unquote(parts.path.strip("/"))
    if not _INDEX.fullmatch(index):
        raise UsageError(
            f'"{index:.60}" is no name of an index',
            detail="lower-case letters, digits and . _ + -",
            hint=_FORM,
        )
    user, password = (None if text is None else unquote(text) for text in (parts.username, parts.password))
    return Address(parts.hostname, _port(parts), _TLS[parts.scheme], index, user, password)


def index_of(name: str, version: int) -> str:
    """Return the index that holds a version: the name itself is that of the first, and later an alias.

    >>> index_of("customers", 1), index_of("customers", 2)
    ('customers', 'customers@2')
    """
    return name if version == 1 else f"{name}@{version}"


def _port(parts: SplitResult) -> int:
    try:
        return parts.port or 9200
    except ValueError:
        raise UsageError("the port in the URL of an index is no number", hint=_FORM) from None
