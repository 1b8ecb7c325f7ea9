"""Flink's side of ``bench/kafka.py``: ``flink_sql.py SERVERS CASE DIRECTORY``, run by Flink's own Python."""

import sys
import time
from pathlib import Path

from pyflink.table import EnvironmentSettings, TableEnvironment

servers, case, directory = sys.argv[1:]
jar = next((Path(sys.executable).parents[1] / "jars").glob("*.jar"))

tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
for option, value in {
    "pipeline.jars": f"file://{jar}",
    "parallelism.default": "2",
    "pipeline.object-reuse": "true",
    "table.local-time-zone": "UTC",
}.items():
    tables.get_config().set(option, value)

for topic in ("events", "clicks"):
    tables.execute_sql(f"""
        CREATE TABLE {topic} (
            id STRING, `user` STRING, amount DOUBLE, `at` BIGINT,
            ts AS TO_TIMESTAMP_LTZ(`at`, 3), WATERMARK FOR ts AS ts - INTERVAL '10' SECOND
        ) WITH (
            'connector' = 'kafka', 'topic' = '{topic}', 'properties.bootstrap.servers' = '{servers}',
            'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = 'json'
        )""")

OVER = {
    "tumbling": "TUMBLE(TABLE events, DESCRIPTOR(ts), INTERVAL '1' MINUTE)",
    "hopping": "HOP(TABLE events, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)",
}
if case == "within":
    columns = "ts TIMESTAMP_LTZ(3), name STRING, amount DOUBLE"
    query = """
        SELECT e.ts, e.id || ' ' || c.id, e.amount FROM events e JOIN clicks c
        ON e.`user` = c.`user` AND c.ts BETWEEN e.ts AND e.ts + INTERVAL '0.5' SECOND"""
elif case == "as_of":
    tables.execute_sql("""
        CREATE TEMPORARY VIEW newest AS SELECT id, `user`, `at`, ts FROM (
            SELECT *, ROW_NUMBER() OVER (PARTITION BY `user` ORDER BY ts DESC) AS number FROM clicks
        ) WHERE number = 1""")
    columns = "ts TIMESTAMP_LTZ(3), id STRING, click_at BIGINT"
    query = """
        SELECT e.ts, e.id, COALESCE(c.`at`, -1) FROM events e LEFT JOIN newest FOR SYSTEM_TIME AS OF e.ts AS c
        ON e.`user` = c.`user`"""
else:
    columns = "w TIMESTAMP(3), `user` STRING, n BIGINT, total DOUBLE"
    query = (
        f"SELECT window_start, `user`, COUNT(*), SUM(amount) FROM TABLE({OVER[case]})"  # noqa: S608
        " GROUP BY window_start, window_end, `user`"
    )
tables.execute_sql(
    f"CREATE TABLE results ({columns}) WITH "
    f"('connector' = 'filesystem', 'path' = '{directory}/out', 'format' = 'csv')"
)
started = time.perf_counter()
tables.execute_sql(f"INSERT INTO results {query}").wait()
print(time.perf_counter() - started)
