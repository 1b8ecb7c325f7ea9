"""What a target is before it is known what its rows look like, and which tables and directories are its own.

Invariant: a target connects to nothing until it is opened, and shows nothing secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from headwater.sinks.delivery.declaration import DeliveryDeclaration
from headwater.sinks.sink import Sink
from headwater.sinks.versions import TargetVersions

_VERSION = re.compile(r"(.+)@\d+(?:_changes)?")
"""The table of a view's version, or of its changes."""


class TableName(NamedTuple):
    """A table, a file or a directory, and the database or path that holds it."""

    database: str
    name: str
    is_prefix: bool = False
    """Whether it is the beginning of names, all of which belong to it."""

    def overlaps(self, other: TableName) -> bool:
        """Tell whether something belongs to both.

        >>> TableName("cache", "a:", True).overlaps(TableName("cache", "a:b:", True))
        True
        """
        names = sorted((self.name, other.name), key=len)
        same = names[1].startswith(names[0]) if self.is_prefix and other.is_prefix else names[0] == names[1]
        return self.database == other.database and same


@dataclass(frozen=True)
class SinkTarget:
    """A sink that waits for its columns."""

    name: str
    open: Callable[[pa.Schema], Sink] = field(repr=False)
    """Makes the sink; what it closes over may be secret, so it is not shown."""
    key: tuple[str, ...] = ()
    """By what a row replaces an earlier one, if it does."""
    check: Callable[[pa.Schema], object] = field(default=lambda schema: None, repr=False)
    """Refuses columns that it cannot take, without connecting to anything."""
    database: str | None = field(default=None, repr=False)
    """The database, file or directory, if it is one."""
    tables: tuple[str, ...] = ()
    """What it writes to there."""
    readable: bool = False
    """Whether what it holds can be read back, by key, and so be compared with what it should hold."""
    versions: TargetVersions | None = field(default=None, repr=False)
    """How it is built anew beside what readers see, if it can be."""
    by_prefix: bool = False
    """Whether all names that begin as its tables do are its own."""
    delivery: DeliveryDeclaration | None = field(default=None, repr=False)
    """What it delivers, if it does: then its outbox is in the home of the pipeline."""

    def table_names(self) -> list[TableName]:
        """Return what it writes to; one who writes to a view's version writes to the view."""
        if self.database is None:
            return []
        views = [found[1] for name in self.tables if (found := _VERSION.fullmatch(name))]
        return [TableName(self.database, name, self.by_prefix) for name in (*self.tables, *views)]
