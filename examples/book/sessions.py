"""Visits to a web site: page views of a user less than half an hour apart belong together.

A page view that comes late may bridge two visits; then there is one visit where there were two.
"""

from headwater import Pipeline, agg, windows

site = Pipeline("sessions", log="file:./data")
site.source("views", "user STRING, page STRING, at TIMESTAMP", event_time="at", lateness="1 minute")


@site.view(key=["user", "window_start"])
def visits(views):
    """Each visit, from its first page view to half an hour after the last: how many pages, and which."""
    return views.transform(
        windows.session(
            "30 minutes",
            by="user",
            pages=agg.count(),
            entry=agg.first("page"),
            exit=agg.last("page"),
            late="correct",
            keep="1 day",
        )
    )
