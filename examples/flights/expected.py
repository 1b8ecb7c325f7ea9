"""What the views must hold, asked of DuckDB, which knows nothing of streams.

python expected.py    compares the views in ./data with that, row by row

One thing only the run can tell is which flights came too late for the weather to be looked up. They are
kept in a topic of the log, and are left out here.
"""

import argparse
import sys

import duckdb
import pyarrow as pa

import headwater
from headwater import open_views

QUERIES = {
    "departures": """
        SELECT origin, date_trunc('hour', scheduled) AS window_start,
               window_start + INTERVAL 1 HOUR AS window_end,
               count(*) AS flights, count(dep_delay) AS departed, avg(dep_delay) AS mean_delay,
               quantile_disc(dep_delay, 0.5) AS median, quantile_disc(dep_delay, 0.9) AS p90
        FROM flights GROUP BY origin, window_start""",
    "shifts": """
        WITH flown AS (
          SELECT *, scheduled - lag(scheduled) OVER (PARTITION BY tailnum ORDER BY scheduled) AS pause
          FROM flights WHERE dep_delay IS NOT NULL
        ), numbered AS (
          SELECT *, count(*) FILTER (pause IS NULL OR pause >= INTERVAL 8 HOUR)
                    OVER (PARTITION BY tailnum ORDER BY scheduled) AS shift
          FROM flown
        )
        SELECT tailnum, min(scheduled) AS window_start, max(scheduled) + INTERVAL 8 HOUR AS window_end,
               count(*) AS flights, sum(distance)::BIGINT AS miles,
               first(origin ORDER BY scheduled, origin) AS first_origin,
               last(dest ORDER BY scheduled, dest) AS last_dest
        FROM numbered GROUP BY tailnum, shift""",
    "conditions": """
        SELECT id, flights.origin, dep_delay, scheduled, temp, wind_speed, precip, visib, since AS version_at
        FROM flights ASOF LEFT JOIN weather ON flights.origin = weather.origin AND since <= scheduled
        ANTI JOIN late USING (id)""",
    "seats": """
        SELECT coalesce(manufacturer, 'unknown') AS manufacturer,
               date_trunc('day', scheduled - INTERVAL 5 HOUR) + INTERVAL 5 HOUR AS window_start,
               window_start + INTERVAL 1 DAY AS window_end,
               count(dep_delay) AS flights, sum(seats)::BIGINT AS seats
        FROM flights LEFT JOIN planes USING (tailnum) GROUP BY ALL""",
}
KEYS = {
    "departures": ("origin", "window_start"),
    "shifts": ("tailnum", "window_start"),
    "conditions": ("id",),
    "seats": ("manufacturer", "window_start"),
}
LATE = "air.conditions.late"


def expected(tables, late=()):
    """Return the rows of each view, of flights, weather and planes as Arrow tables, and who came too late."""
    with duckdb.connect() as database:
        for name, table in tables.items():
            database.register(name, in_utc(table))
        database.register("late", pa.table({"id": pa.array(late, pa.int64())}))
        return {view: database.sql(query).to_arrow_table() for view, query in QUERIES.items()}


def in_utc(table):
    """Return a table whose times are plain ones: those of Headwater are in UTC anyway."""
    plain = pa.timestamp("us")
    types = [plain if pa.types.is_timestamp(field.type) else field.type for field in table.schema]
    return table.cast(pa.schema(zip(table.column_names, types, strict=True)))


def compared(view, found, wanted):
    """Return the rows of a view that are not as they must be, as pairs by key: found, and wanted."""
    found, wanted = (by_key(view, in_utc(rows).select(wanted.column_names)) for rows in (found, wanted))
    keys = sorted(found.keys() | wanted.keys())
    return {key: (found.get(key), wanted.get(key)) for key in keys if found.get(key) != wanted.get(key)}


def by_key(view, rows):
    return {tuple(row[name] for name in KEYS[view]): row for row in rows.to_pylist()}


def set_aside(log):
    """Return the numbers of the flights that came too late; a late row of a join says which side it is of."""
    if LATE not in {topic.name for topic in log.topics()}:
        return []
    return [row["_left"]["id"] for row in whole(log, LATE).to_pylist() if row["_side"] == 0]


def whole(log, topic):
    return pa.Table.from_batches(log.read(topic), log.topic(topic).read_schema)


def main():
    parser = argparse.ArgumentParser(description="Compares the views with what DuckDB says.")
    parser.add_argument("--dir", default="./data", help="where log and views are (./data)")
    options = parser.parse_args()
    with headwater.open(f"file:{options.dir}") as log:
        tables = {name: whole(log, name) for name in ("flights", "weather", "planes")}
        late = set_aside(log)
    views, wrong = open_views(f"{options.dir}/pipelines/air/views.db"), 0
    for view, rows in expected(tables, late).items():
        different = compared(view, views[view].scan().to_table(), rows)
        wrong += len(different)
        print(f"{view}: {len(rows)} rows, {len(different)} differ")
        for found, wanted in list(different.values())[:3]:
            print(f"  {found}\n  should be {wanted}")
    print(f"{len(late)} flights came too late for their weather")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
