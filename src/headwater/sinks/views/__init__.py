"""Views: tables by key that keep themselves right, in SQLite or PostgreSQL.

``open_views`` is for everyone who reads, a ``Store`` for the runner that writes them.
"""

from headwater.errors import Behind
from headwater.sinks.sqlite.sink import ViewSink
from headwater.sinks.sqlite.store import ViewStore
from headwater.sinks.views.feed import Change
from headwater.sinks.views.opening import open_views
from headwater.sinks.views.store import Store, Views
from headwater.sinks.views.view import Scan, View

__all__ = ["Behind", "Change", "Scan", "Store", "View", "ViewSink", "ViewStore", "Views", "open_views"]
