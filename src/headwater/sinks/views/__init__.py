"""Views: tables by key that keep themselves right, in SQLite or PostgreSQL.

``open_views`` is for everyone who reads, a ``Store`` for the runner that writes them.
"""

from typing import TYPE_CHECKING, Any

from headwater.errors import Behind
from headwater.sinks.views.feed import Change
from headwater.sinks.views.opening import open_views
from headwater.sinks.views.store import Store, Views
from headwater.sinks.views.view import Scan, View

if TYPE_CHECKING:
    from headwater.sinks.sqlite.sink import ViewSink
    from headwater.sinks.sqlite.store import ViewStore

__all__ = ["Behind", "Change", "Scan", "Store", "View", "ViewSink", "ViewStore", "Views", "open_views"]


def __getattr__(name: str) -> Any:
    """Find what is made of this package, when it is asked for: whichever is imported first must do."""
    if name == "ViewSink":
        from headwater.sinks.sqlite.sink import ViewSink

        return ViewSink
    if name == "ViewStore":
        from headwater.sinks.sqlite.store import ViewStore

        return ViewStore
    raise AttributeError(f'module "{__name__}" has no attribute "{name}"')
