"""Secrets of webhooks: from the environment or from a file, and from nowhere else.

Invariant: a secret is in no command line, no error, no log line and no ``repr``.
"""

from __future__ import annotations

import os
from pathlib import Path

from headwater.errors import UsageError

SHORTEST = 8
"""Characters below which a secret is taken for a mistake."""


class Secrets:
    """One secret, or several while one is replaced by another: a signature by any of them is good.

    >>> Secrets(["not for your eyes"])
    Secrets(1)
    """

    def __init__(self, values: list[str]):
        self.values = tuple(values)

    def __repr__(self) -> str:
        return f"Secrets({len(self.values)})"


def read_secrets(source: str) -> Secrets:
    """Read ``env:NAME`` or ``file:PATH``; several secrets stand on lines of their own, or with spaces
    between."""
    kind, _, name = source.partition(":")
    if kind == "env" and name:
        text, where = os.environ.get(name), f"environment variable {name}"
    elif kind == "file" and name:
        text, where = _file_text(Path(name)), f'file "{name}"'
    else:
        raise UsageError(
            "a secret is read from the environment or from a file",
            hint='name it as "env:HOOK_SECRET" or "file:/run/secrets/hook"',
        )
    values = [line.strip() for line in (text or "").splitlines() if line.strip()]
    if not values or min(map(len, values)) < SHORTEST:
        what = "holds no secret" if not values else f"holds a secret of less than {SHORTEST} characters"
        raise UsageError(f"{where} {what}", hint="set it to the secret that the sender signs with")
    return Secrets(values)


def _file_text(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:
        return None
    except UnicodeDecodeError:
        return None
