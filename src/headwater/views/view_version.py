"""One version of a view, as the catalog of its store has it, whichever store that is.

Invariant: no two versions of a view share the number of a change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from headwater import schema as schemas
from headwater.errors import SchemaError, UnknownView, UsageError, nearest
from headwater.log.position import Position
from headwater.values.keyed import KeyedSchema

FIRST = 40
"""The changes of version n are numbered from ``(n - 1) << FIRST`` on."""
DEFAULT_FEED = 100_000
"""How many of the newest changes of a view are kept, if nothing else is said."""


@dataclass(frozen=True)
class ViewVersion:
    """One version of a view, and how far it has got."""

    id: int
    name: str
    version: int
    columns: str
    key: tuple[str, ...]
    published: bool
    batch: int
    epoch: int
    positions: tuple[Position, ...]
    watermark: int | None
    filled: bool
    """Whether it had rows after the last batch: then an empty one has lost them."""

    @property
    def keyed(self) -> KeyedSchema:
        """What it is declared to hold."""
        return declared(self.name, self.columns, self.key)

    @property
    def first(self) -> int:
        """The number before that of the version's first change."""
        return first_change(self.version)


def first_change(version: int) -> int:
    """Return the number before that of a version's first change."""
    return (version - 1) << FIRST


def version_of_change(number: int) -> int:
    """Return the version of a view that has the change of a number."""
    return (number >> FIRST) + 1


def positions(text: str) -> tuple[Position, ...]:
    """Read positions as a catalog keeps them, one in a line."""
    return tuple(Position.parse(line) for line in text.split())


def unknown(name: str, version: int | None, names: Sequence[str], versions: Sequence[int]) -> UnknownView:
    """Return the error for a view, or a version of one, that is not there."""
    if not versions:
        listed = "views: " + ", ".join(names) if names else "the store has no views yet"
        return UnknownView(f'no view "{name}"', hint=nearest(str(name), names) or listed)
    listed = "versions: " + ", ".join(map(str, versions))
    if version is None:
        return UnknownView(f'view "{name}" has no published version', hint=listed)
    return UnknownView(f'view "{name}" has no version {version}', hint=listed)


def check_same(entry: ViewVersion, keyed: KeyedSchema) -> None:
    """Refuse other columns, or another key, than a version has."""
    stored = entry.keyed
    if stored.key == keyed.key and stored.schema.equals(keyed.schema, check_metadata=True):
        return
    raise SchemaError(
        f"version {entry.version} of {keyed.what} has other columns or another key",
        detail=f"it has `{entry.columns}` by ({', '.join(entry.key)}), "
        f"asked for `{schemas.ddl(keyed.schema)}` by ({', '.join(keyed.key)})",
        hint=f"build version {entry.version + 1} and publish it",
    )


def check_numbers(version: int | None, feed: int) -> None:
    """Refuse what is no version, or no number of changes to keep."""
    if version is not None and not (isinstance(version, int) and 0 < version < 1 << 20):
        raise UsageError(f"a version is a whole number from 1 on, not {version!r:.60}")
    if not isinstance(feed, int) or feed < 1:
        raise UsageError(f"feed is how many changes are kept, at least 1, not {feed!r:.60}")


@lru_cache(maxsize=256)
def declared(name: str, columns: str, key: tuple[str, ...]) -> KeyedSchema:
    """Return what a view is declared to hold, as the catalog has it."""
    return KeyedSchema(f'view "{name}"', schemas.parse(columns), key)
