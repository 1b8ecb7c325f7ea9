"""How a server is to serve: where it listens, and what it asks of those who call it."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

HOST, PORT = "127.0.0.1", 8765


@dataclass(frozen=True)
class ServeSettings:
    """Where a server listens, with which certificate, for pages of which origins, and within which limits."""

    host: str = HOST
    port: int = PORT
    """0 for any that is free."""
    certificate: Path | None = None
    key: Path | None = None
    origins: tuple[str, ...] = ()
    """Origins whose pages may call it (CORS); none unless asked."""
    tokens: Path | None = None
    """Where the tokens are; required unless the host is a loopback address."""
    state: Path | None = None
    """Where it keeps what it has to know after a restart: tokens, and which requests were stored.

    Within a log in a directory unless it is named; for a broker in ``$XDG_STATE_HOME/headwater/serve``, or
    below ``~/.local/state``. Servers of one log must share it to know each other's requests.
    """
    body_bytes: int = 16 << 20
    """How large a body may be."""
    waiting_bytes: int = 64 << 20
    """How many bytes of events may wait to be appended."""
    connections: int = 4096
    """How many connections there may be at once."""
    request_seconds: float = 60.0
    """How long a request may be on its way to the server."""


def state_home(url: str) -> Path:
    """Return where the servers of a log keep what they have to know, unless they are told otherwise.

    That is within a log in a directory. A broker has no place for it, so it is in the directory where a
    user's programs keep their state; in which directory a server is started makes no difference.
    """
    scheme, _, rest = url.partition(":")
    if scheme == "file":
        return Path(rest.removeprefix("//")) / "serve"
    return _state_of_user() / "headwater" / "serve" / _name_of_broker(url)


def _state_of_user() -> Path:
    named = Path(os.environ.get("XDG_STATE_HOME", ""))
    return named if named.is_absolute() else Path.home() / ".local" / "state"


def _name_of_broker(url: str) -> str:
    """Return a name for a broker: the same in whichever order its servers are named, and without options."""
    address = url.partition("?")[0].partition("//")[2]
    servers = sorted(each for each in address.split(",") if each) or [url.partition(":")[0]]
    digest = hashlib.sha256(",".join(servers).encode()).hexdigest()[:12]
    return f"{re.sub('[^A-Za-z0-9.-]', '-', servers[0])[:60]}-{digest}"
