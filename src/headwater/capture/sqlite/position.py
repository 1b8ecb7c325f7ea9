"""Where in an outbox a reader is: the number of a change, which outbox it is in, and when it was made.

A change's number alone would not tell a database from one that was restored from a backup and has been
written to since. Its time does: the change stays in the outbox for as long as anyone may begin there, and is
compared.
"""

from __future__ import annotations

from typing import NamedTuple, Self

from headwater.errors import SourceRefused


class OutboxPosition(NamedTuple):
    """Behind a change."""

    outbox: str
    """The outbox's random name: one that was made anew has another."""
    id: int
    at: int
    """When the change was made, in milliseconds since 1970."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the position that a text stands for."""
        outbox, _, rest = text.partition(":")
        id, _, at = rest.partition(":")
        try:
            return cls(outbox, int(id), int(at))
        except ValueError:
            raise SourceRefused(
                f'"{text}" is no position of an SQLite database', hint="capture it anew, from a new snapshot"
            ) from None

    def __str__(self) -> str:
        return f"{self.outbox}:{self.id}:{self.at}"
