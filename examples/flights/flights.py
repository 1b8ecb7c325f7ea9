"""The flights that left New York in 2013: what really happened, in the order in which it was known.

headwater run flights.py      keeps the views, on the log in ./data
python feed.py                tells of the flights
python expected.py            asks DuckDB the same questions, and compares

A flight is told of when it is over, and belongs to the hour in which it should have left: so each one
is late, by its own delay and by the hours it was in the air.
"""

from headwater import Pipeline, agg, joins, windows

air = Pipeline("air", log="file:./data")

air.source(
    "flights",
    "id BIGINT, carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING, distance INT, "
    "dep_delay INT, arr_delay INT, scheduled TIMESTAMP, ended TIMESTAMP",
    event_time="scheduled",  # when it should have left
    lateness="6 hours",  # 98 of 100 are over by then
)
air.table(
    "weather",
    "origin STRING, temp DOUBLE, wind_speed DOUBLE, precip DOUBLE, visib DOUBLE, since TIMESTAMP",
    key="origin",
    event_time="since",
)
air.table("planes", "tailnum STRING, manufacturer STRING, model STRING, seats INT", key="tailnum")


@air.view(key=["origin", "window_start"])
def departures(flights):
    """What left each airport, hour by hour, and how late; put right when a flight is over that was long."""
    return flights.transform(
        windows.tumbling(
            "1 hour",
            by="origin",
            flights=agg.count(),
            departed=agg.count("dep_delay"),  # which a cancelled flight has not
            mean_delay=agg.mean("dep_delay"),
            median=agg.exact_quantile("dep_delay", 0.5),
            p90=agg.exact_quantile("dep_delay", 0.9),
            late="correct",
            keep="2 days",
        )
    )


@air.view(key=["tailnum", "window_start"])
def shifts(flights):
    """What each aircraft did in a row: its flights from New York that are less than 8 hours apart."""
    flown = flights.filter("dep_delay IS NOT NULL")
    return flown.transform(
        windows.session(
            "8 hours",
            by="tailnum",
            flights=agg.count(),
            miles=agg.sum("distance"),
            first_origin=agg.first("origin"),
            last_dest=agg.last("dest"),
            late="correct",
            keep="2 days",
        )
    )


@air.view(key="id")
def conditions(flights, weather):
    """Each flight with the weather at its airport when it should have left."""
    some = flights.select("id", "origin", "dep_delay", "scheduled")
    return some.transform(joins.as_of(weather, on="origin"))


@air.stream()
def equipped(flights, planes):
    """Each flight with its aircraft, as far as that is known."""
    some = flights.select("id", "tailnum", "dep_delay", "scheduled")
    return some.transform(joins.lookup(planes, on="tailnum")).fillna("unknown", "manufacturer")


@air.view(key=["manufacturer", "window_start"])
def seats(equipped):
    """Flights and seats by who has built the aircraft, day by day as New York has them in winter."""
    return equipped.transform(
        windows.tumbling(
            "1 day",
            by="manufacturer",
            offset="5 hours",
            flights=agg.count("dep_delay"),
            seats=agg.sum("seats"),
            late="correct",
            keep="2 days",
        )
    )
