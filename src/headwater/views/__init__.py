"""Views: tables by key that keep themselves right, in SQLite or PostgreSQL.

``open_views`` is for everyone who reads, a ``Store`` for the runner that writes them.
"""

from typing import TYPE_CHECKING, Any

from headwater.errors import Behind
from headwater.views.changes import Change
from headwater.views.opening import open_views
from headwater.views.query import ViewQuery
from headwater.views.reading import Reading, StoredRow
from headwater.views.snapshot import ViewSnapshot
from headwater.views.store import Store, Views
from headwater.views.view import View, ViewScan
from headwater.views.view_version import ViewVersion, version_of_change

if TYPE_CHECKING:
    from headwater.views.sqlite.sink import SqliteSink
    from headwater.views.sqlite.store import ViewStore

__all__ = [
    "Behind",
    "Change",
    "Reading",
    "SqliteSink",
    "Store",
    "StoredRow",
    "View",
    "ViewQuery",
    "ViewScan",
    "ViewSnapshot",
    "ViewStore",
    "ViewVersion",
    "Views",
    "open_views",
    "version_of_change",
]


def __getattr__(name: str) -> Any:
    """Find what is made of this package, when it is asked for: whichever is imported first must do."""
    if name == "SqliteSink":
        from headwater.views.sqlite.sink import SqliteSink

        return SqliteSink
    if name == "ViewStore":
        from headwater.views.sqlite.store import ViewStore

        return ViewStore
    raise AttributeError(f'module "{__name__}" has no attribute "{name}"')
