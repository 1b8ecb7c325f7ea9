"""Timelines: how many changes a second ``joins.tables`` takes, and how soon a post is in all its timelines.

10,000 users, of whom one is followed by all, and the others the less the higher their number. The view
is in SQLite, in the order of time. The time of a post is from before its append until the view has passed
it, that is until the timelines of all its readers show it.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from rich.console import Console
from rich.table import Table

from headwater import Pipeline, joins, open_views
from headwater.engine.runner import Runner
from headwater.engine.spark.session import session

USERS = 10_000
FOLLOWS = 100_000
POSTS = 2_000
SAMPLES, WARM_UP = 60, 5
console = Console(width=110)


def social(root: Path) -> Pipeline:
    pipeline = Pipeline("social", log=f"file:{root / 'log'}")
    pipeline.table("posts", "id BIGINT, author STRING, text STRING, at TIMESTAMP", key="id")
    pipeline.table("follows", "follower STRING, author STRING", key=["follower", "author"])

    @pipeline.view(key=["follower", "id"], order="at")
    def timelines(posts: DataFrame, follows: DataFrame) -> DataFrame:
        return posts.transform(joins.tables(follows, on="author"))

    return pipeline


def main() -> None:
    root = Path(tempfile.mkdtemp(prefix="headwater-bench-"))
    spark = session(output=root / "spark.log")
    try:
        with Runner(social(root), spark=spark) as runner:
            console.print(Bench(root, runner).figures())
    finally:
        spark.stop()
        shutil.rmtree(root, ignore_errors=True)


class Bench:
    def __init__(self, root: Path, runner: Runner):
        self.runner, self.log = runner, runner.log
        self.views = open_views(runner.pipeline.home / "views.db")
        self.chance = np.random.default_rng(11)

    def figures(self) -> Table:
        table = Table(title="timelines of 10 k users (joins.tables)", title_justify="left")
        table.add_column("measure")
        table.add_column("headwater", justify="right")
        changes = self.load()
        before = time.perf_counter()
        self.runner.catch_up()
        taken = time.perf_counter() - before
        rows = self.views["timelines"].count()
        table.add_row("changes of tables", f"{changes / taken:,.0f} /s")
        table.add_row("changes of timelines that follow", f"{rows / taken:,.0f} /s")
        live = threading.Thread(target=self.runner.run, args=(lambda: None,))
        live.start()
        try:
            self.tell(table)
        finally:
            self.runner.stop()
            live.join()
        return table

    def tell(self, table: Table) -> None:
        for name, author in (("a post of anybody", None), ("a post that 10 k readers get", 0)):
            taken = sorted([self.posted(author) for _ in range(SAMPLES + WARM_UP)][WARM_UP:])
            p50, p99 = (taken[int(len(taken) * share)] for share in (0.5, 0.99))
            table.add_row(f"{name}, append to visible", f"p50 {p50:.2f} s, p99 {p99:.2f} s")
        start = time.perf_counter()
        found = self.views["timelines"].scan("user-7", order="at", descending=True, limit=20).to_pylist()
        assert found
        table.add_row("the newest 20 of a timeline, read", f"{(time.perf_counter() - start) * 1000:.1f} ms")

    def load(self) -> int:
        """Append who follows whom, and posts; return how many changes that is."""
        readers = self.chance.integers(0, USERS, FOLLOWS)
        authors = np.minimum(self.chance.zipf(1.3, FOLLOWS), USERS - 1)
        pairs = {(int(r), int(a)) for r, a in zip(readers, authors, strict=True)} | {
            (reader, 0) for reader in range(USERS)
        }
        with self.log.producer("follows") as producer:
            producer.send_batch([{"follower": f"user-{r}", "author": f"user-{a}"} for r, a in sorted(pairs)])
        self.next = POSTS
        writers = self.chance.integers(1, USERS, POSTS).tolist()
        with self.log.producer("posts") as producer:
            producer.send_batch(
                pa.table(
                    {
                        "id": list(range(POSTS)),
                        "author": [f"user-{each}" for each in writers],
                        "text": ["hello"] * POSTS,
                        "at": pa.array([datetime.now(UTC)] * POSTS, pa.timestamp("us", "UTC")),
                    }
                )
            )
        return len(pairs) + POSTS

    def posted(self, author: int | None) -> float:
        """Append a post; return how long it took until it was in all timelines."""
        writer = int(self.chance.integers(1, USERS)) if author is None else author
        self.next += 1
        time.sleep(self.chance.random() * 0.3)  # at any moment of a micro-batch
        before = time.perf_counter()
        with self.log.producer("posts") as producer:
            row = {"id": self.next, "author": f"user-{writer}", "text": "news", "at": datetime.now(UTC)}
            producer.send(row)
            position = producer.flush()
        self.views["timelines"].get(("user-7", self.next), wait_for=position, timeout=60)
        return time.perf_counter() - before


if __name__ == "__main__":
    sys.exit(main())
