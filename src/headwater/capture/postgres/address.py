"""Which slot and publication a URL gives, and the URL that PostgreSQL's library understands.

Invariant: what is passed on has nothing of ours, and an error repeats nothing of a URL but the names that it
gives to a slot or publication.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, urlencode

from headwater.errors import UsageError

_OURS: Final = ("slot", "publication")
_SLOT: Final = re.compile(r"[a-z0-9_]{1,63}")
_LONGEST: Final = 63
"""Bytes of a name."""


@dataclass(frozen=True)
class PostgresAddress:
    """A database, and what was made there for its capture; None where the capture makes its own."""

    url: str = field(repr=False)
    slot: str | None = None
    publication: str | None = None


def parse(url: str) -> PostgresAddress:
    """Take ``slot`` and ``publication`` off a URL.

    >>> parse("postgresql://db/shop?slot=mine&sslmode=require")
    PostgresAddress(slot='mine', publication=None)
    """
    before, mark, query = url.partition("?")
    if not mark or not any(f"{name}=" in query for name in _OURS):
        return PostgresAddress(url)
    settings = parse_qsl(query, keep_blank_values=True)
    given = {name: [value for key, value in settings if key == name] for name in _OURS}
    rest = urlencode([each for each in settings if each[0] not in _OURS])
    address = PostgresAddress(
        before + (f"?{rest}" if rest else ""), *(_only(name, given[name]) for name in _OURS)
    )
    if address.slot is not None and not _SLOT.fullmatch(address.slot):
        hint = "slots are named by small letters, digits and _, 63 at most"
        raise UsageError(f'"{address.slot[:_LONGEST]}" cannot be the name of a replication slot', hint=hint)
    return address


def _only(name: str, values: list[str]) -> str | None:
    if not values:
        return None
    if len(values) > 1 or not values[0] or len(values[0].encode()) > _LONGEST:
        raise UsageError(
            f"the URL of a database gives no {name} that there can be",
            hint=f"give the name of one: postgresql://…/shop?{name}=mine",
        )
    return values[0]
