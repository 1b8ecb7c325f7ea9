"""How often a search result is clicked: each search with its click within the hour, or none.

headwater run click_through.py
headwater produce searches < searches.ndjson
"""

from headwater import Pipeline, agg, joins, windows

shop = Pipeline("click_through", log="file:./data")
shop.source(
    "searches",
    "session STRING, query STRING, url STRING, at TIMESTAMP",
    event_time="at",
    lateness="10 minutes",
)
shop.source("clicks", "session STRING, url STRING, at TIMESTAMP", event_time="at", lateness="10 minutes")


@shop.stream()
def search_outcomes(searches, clicks):
    """Each search with its click within the hour, or none; the click may arrive before the search."""
    return searches.transform(
        joins.within(clicks, on=["session", "url"], after="1 hour", how="left", prefix="click_")
    )


@shop.view(key=["url", "window_start"])
def click_through(search_outcomes):
    """How often each result was shown and clicked, minute by minute."""
    return search_outcomes.transform(
        windows.tumbling(
            "1 minute",
            by="url",
            clicked=agg.count("click_at"),
            shown=agg.count(),
            late="correct",
            keep="1 hour",
        )
    )
