"""Views: tables by key that keep themselves right, in one SQLite file per pipeline.

``ViewStore`` is for the runner that writes them, ``open_views`` for everyone who reads.
"""

from headwater.errors import Behind
from headwater.sinks.views.feed import Change
from headwater.sinks.views.sink import ViewSink
from headwater.sinks.views.store import ViewStore
from headwater.sinks.views.view import Scan, View, Views, open_views

__all__ = ["Behind", "Change", "Scan", "View", "ViewSink", "ViewStore", "Views", "open_views"]
