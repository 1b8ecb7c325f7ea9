"""The names of what a capture makes in a database.

Invariant: a capture's own things begin with ``headwater_capture_NAME:``, nothing else does, and no other
capture's do: a name has no colon.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from headwater.errors import UsageError

PREFIX = "headwater_capture_"
_CAPITAL = re.compile("[A-Z]")
_NAME = re.compile(r"[A-Za-z0-9_.-]+")


def quoted(name: str) -> str:
    """Return a name as SQL writes it, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class ObjectNames:
    """The names of one capture's tables and triggers."""

    capture: str

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.capture):
            raise UsageError(
                f'a capture of SQLite cannot be named "{self.capture}"',
                hint="use letters, digits, and any of _ . -",
            )

    @property
    def prefix(self) -> str:
        """What all of them begin with; SQLite takes Shop for shop, so capital letters are marked."""
        return f"{PREFIX}{_CAPITAL.sub(lambda found: '^' + found[0].lower(), self.capture)}:"

    @property
    def about(self) -> str:
        """The table that says which outbox it is."""
        return quoted(self.prefix + "about")

    @property
    def outbox(self) -> str:
        """The table of changes."""
        return quoted(self.prefix + "outbox")

    @property
    def tables(self) -> str:
        """The table of captured tables, in each form that they have had."""
        return quoted(self.prefix + "tables")

    @property
    def replaced(self) -> str:
        """The table of rows that a statement may be about to replace."""
        return quoted(self.prefix + "replaced")

    def trigger(self, source: int, event: str) -> str:
        """Return the name of a trigger, unquoted."""
        return f"{self.prefix}{source}:{event}"
