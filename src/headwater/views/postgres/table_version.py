"""One version of a table as the catalog of a PostgreSQL database has it.

The published version of a view has the view's own name, so that anyone can select from it; the others
are named with ``@`` and their number, which no view's name has. Invariant: an entry's marks are those
of no other entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from headwater.views import view_version
from headwater.views.postgres.statements import Statements
from headwater.views.view_version import declared


@dataclass(frozen=True)
class TableVersion(view_version.ViewVersion):
    """One version of a table, and how far it has got."""

    changes: int
    """The number of its newest change."""
    adopted: bool
    """Whether the table was there before its sink: then it is the user's own."""

    @property
    def table(self) -> str:
        """The name that its table has now."""
        return self.name if self.published else f"{self.name}@{self.version}"

    @property
    def sql(self) -> Statements:
        """The statements for its tables, as they are named now."""
        return _statements(self.table, self.name, self.columns, self.key)

    def mark(self, part: str) -> str:
        """Return the comment by which a part of it is known: its rows, its changes, its order."""
        return f'Headwater: {part} of "{self.name}", version {self.version}, headwater_sinks {self.id}'


@lru_cache(maxsize=256)
def _statements(table: str, name: str, columns: str, key: tuple[str, ...]) -> Statements:
    return Statements(table, declared(name, columns, key))
