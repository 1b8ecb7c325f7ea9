"""What a cache is declared to hold, and where; known without the client of a server.

Invariant: a prefix is a cache's own, and no column has the name of what is stored beside the columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

import pyarrow as pa

from headwater.errors import SchemaError, UsageError
from headwater.values.keyed import KeyedSchema, declare

OWN = "headwater:"
"""How our own keys begin."""
VERSION = "_version"
"""The member of a row's JSON, always its first, by which a script tells how old the row is."""


@dataclass(frozen=True)
class CachePlace:
    """Where the rows of a cache are, and the record of how far they go."""

    prefix: str
    """How the keys of the rows begin."""
    name: str = ""
    """What the record is named after, where that is not the prefix."""

    @property
    def marker(self) -> str:
        """The key of the record."""
        return f"{OWN}cache:{self.name or self.prefix}"

    def beside(self, version: int) -> CachePlace:
        """Return where a version is built, under keys of our own."""
        return CachePlace(f"{OWN}build:{version}:{self.prefix}", f"build:{version}:{self.prefix}")


def declare_cache(schema: str | pa.Schema, key: str | tuple[str, ...], prefix: str) -> KeyedSchema:
    """Check a declaration."""
    check_prefix(prefix)
    keyed = declare(f'cache "{prefix}"', schema, key)
    if VERSION in keyed.schema.names:
        raise SchemaError(f'column name "{VERSION}" is reserved', hint="it tells older rows from newer ones")
    return keyed


def check_prefix(prefix: str) -> None:
    """Refuse a prefix under which there may be keys of others, or our own."""
    if not prefix or prefix.startswith(OWN):
        raise UsageError(
            f'a cache cannot have the prefix "{prefix}"', hint='name one of its own: "customer:"'
        )


def escaped(prefix: str) -> str:
    """Return a prefix so that Redis does not take a character of it for a pattern."""
    return "".join(f"\\{char}" if char in "\\*?[]^-" else char for char in prefix)


def translated(url: str) -> str:
    """Return a URL as the client takes it: Valkey speaks the language of Redis."""
    return url.replace("valkey", "redis", 1) if url.startswith(("valkey://", "valkeys://")) else url


def database(url: str) -> str:
    """Return which database a URL means, without who connects to it; refuse what is none.

    >>> database("redis://:secret@cache.example/2")
    'cache.example:6379/2'
    """
    parts = urlsplit(translated(url))
    if parts.scheme not in ("redis", "rediss", "unix"):
        raise UsageError("a cache needs the URL of a server", hint='write "redis://host:6379/0"')
    if parts.scheme == "unix":
        return parts.path
    try:
        port = parts.port or 6379
    except ValueError:
        raise UsageError("the port in the URL of a cache is no number") from None
    return f"{parts.hostname or 'localhost'}:{port}/{parts.path.strip('/') or '0'}"
