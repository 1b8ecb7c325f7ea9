"""Which database a URL means: ``mysql://user:password@host:port/database``, or ``mariadb://…``.

Invariant: neither the title nor an error has the password in it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from headwater.errors import UsageError

_SETTINGS: Final = ("ssl_ca", "ssl_cert", "ssl_key")
"""What may stand behind a ``?``: files for an encrypted connection."""
_CONNECT_SECONDS: Final = 10


@dataclass(frozen=True)
class MySqlAddress:
    """Where a database is, and who connects to it."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    database: str
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """How messages name it."""
        return f'MySQL database "{self.database}" on {self.host}:{self.port}'

    @property
    def arguments(self) -> dict[str, Any]:
        """What PyMySQL connects by."""
        return {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "password": self.password,
            "charset": "utf8mb4",
            "connect_timeout": _CONNECT_SECONDS,
            **self.settings,
        }


def parse(url: str) -> MySqlAddress:
    """Read a URL; a password that it lacks is that of the environment."""
    try:
        parts = urlsplit(url)
        port = parts.port or 3306
    except ValueError:
        raise _invalid() from None
    database = unquote(parts.path.removeprefix("/"))
    settings = dict(parse_qsl(parts.query, keep_blank_values=True))
    if not database or "/" in parts.path.removeprefix("/") or parts.fragment:
        raise _invalid()
    if unknown := sorted(set(settings) - set(_SETTINGS)):
        raise UsageError(f'unknown setting "{unknown[0]}" in a MySQL URL', hint=f"use {', '.join(_SETTINGS)}")
    return MySqlAddress(parts.hostname or "127.0.0.1", port, *_who(parts), database, settings)


def _who(parts: SplitResult) -> tuple[str, str]:
    password = os.environ.get("MYSQL_PWD", "") if parts.password is None else unquote(parts.password)
    return unquote(parts.username or "root"), password


def _invalid() -> UsageError:
    # Nothing of the URL is repeated: a password with an @ or a / spoils what comes after it.
    hint = 'write it as "mysql://user:password@host:3306/database", and @ in a password as %40, / as %2F'
    return UsageError("invalid MySQL URL", hint=hint)
