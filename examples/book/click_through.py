"""How often a search result is clicked: each search with its clicks within the hour, or none.

headwater run click_through.py              keeps the view; a minute is shown when its last hour is over
headwater produce searches, or clicks       appends events, as lines of JSON
headwater view scan click_through
"""

from pyspark.sql import functions as F

from headwater import Pipeline, agg, joins, windows

shop = Pipeline("click_through", log="file:./data")
shop.source(
    "searches",
    "id BIGINT, session STRING, query STRING, url STRING, at TIMESTAMP",
    event_time="at",
    lateness="10 minutes",
)
shop.source("clicks", "session STRING, url STRING, at TIMESTAMP", event_time="at", lateness="10 minutes")


@shop.stream()
def search_outcomes(searches, clicks):
    """Each search with its clicks within the hour, or none; a click may arrive before the search."""
    return searches.transform(
        joins.within(clicks, on=["session", "url"], after="1 hour", how="left", prefix="click_")
    )


@shop.view(key=["url", "window_start"])
def click_through(search_outcomes):
    """How many of the searches that found a page were followed by a click, minute by minute."""
    clicked = F.when(F.col("click_at").isNotNull(), F.col("id"))
    counted = search_outcomes.withColumn("clicked", clicked).transform(
        windows.tumbling("1 minute", by="url", shown=agg.distinct("id"), clicked=agg.distinct("clicked"))
    )
    return counted.withColumn("rate", F.col("clicked") / F.col("shown"))
