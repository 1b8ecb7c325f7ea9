"""The views of ``bench.freshness`` as one writes them in plain PySpark: a query each, upserts by hand.

``python -m bench.plain_views ROOT VIEWS`` runs until it is ended. It reads the same log, and knows the
same settings of Spark; time is Spark's own watermark.
"""

from __future__ import annotations

import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headwater.engine.spark.session import session

UPSERT = "INSERT INTO {} VALUES (?, ?) ON CONFLICT (who) DO UPDATE SET id = excluded.id"


def totals(orders: DataFrame) -> DataFrame:
    kept = (F.count("*").alias("n"), F.sum("amount").alias("total"), F.max("at").alias("at"))
    return orders.groupBy("who").agg(F.max_by("id", "at").alias("id"), *kept)


def newest(orders: DataFrame) -> DataFrame:
    return orders.groupBy("who").agg(F.max_by("id", "at").alias("id"), F.max("at").alias("at"))


def seen(orders: DataFrame) -> DataFrame:
    return orders.select("who", "id", "at").filter("id >= 0")


BODIES: tuple[Callable[[DataFrame], DataFrame], ...] = (totals, newest, seen, newest, totals)


def main(root: Path, views: int) -> None:
    spark = session(output=root / "spark.log")
    with closing(sqlite3.connect(root / "plain.db")) as db:
        db.execute("PRAGMA journal_mode = WAL")
        for number in range(views):
            db.execute(f"CREATE TABLE view_{number} (who TEXT PRIMARY KEY, id BIGINT)")
    options = {"url": f"file:{root / 'data'}", "topic": "orders"}
    for number in range(views):
        orders = spark.readStream.format("headwater").options(**options).load()
        writer = BODIES[number % len(BODIES)](orders).writeStream.outputMode("update")
        writer = writer.option("checkpointLocation", str(root / "checkpoints" / str(number)))
        writer.foreachBatch(upserting(root, number)).start()
        time.sleep(1)  # Python workers that all start at once time out
    spark.streams.awaitAnyTermination()


def upserting(root: Path, number: int) -> Callable[[DataFrame, int], None]:
    def upsert(rows: DataFrame, batch: int) -> None:
        found = rows.select("who", "id").toArrow()
        with closing(sqlite3.connect(root / "plain.db", timeout=60)) as db, db:
            db.executemany(
                UPSERT.format(f"view_{number}"), list(zip(*found.to_pydict().values(), strict=True))
            )

    return upsert


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
