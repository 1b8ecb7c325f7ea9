"""Pipelines from Kafka beside Flink SQL: the same topics on one broker, in turns, the results checked equal.

JSON records of about 90 bytes, written by another program, in two partitions. Ours is a pipeline over a view
store; Flink's is an ``INSERT`` into files. Both are measured from the start of the job, with their JVM
running, to its end. Flink (``apache-flink`` of PyPI, and its Kafka connector from Maven Central) is fetched
once into ``.cache``; where it cannot be had, one line says so and ours is measured alone.

Planning is the time from Spark's question how far to read to the answer, over all micro-batches: nothing of
them is computed meanwhile. What it waits for, the process that plans and the first records, is part of it.
The largest share of all rounds is shown.
"""

from __future__ import annotations

import csv
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
EVENTS = int(os.environ.get("BENCH_EVENTS", 2_000_000))
USERS, PARTITIONS, ROUNDS = 10_000, 2, 2
FLINK, CONNECTOR = ROOT / ".cache" / "flink", "org.apache.flink:flink-sql-connector-kafka:5.0.0-2.2"
CASES = os.environ.get("BENCH_CASES", "tumbling hopping within as_of").split()
MILLIS = 1_767_225_600_000
console = Console(width=110)

Results = dict[tuple[str, ...], tuple[float, ...]]


def main() -> None:
    sys.path.insert(0, str(ROOT / "tests" / "servers"))
    from kafka_broker import running_broker

    table = Table(title=f"{EVENTS:,} JSON events on Kafka", title_justify="left")
    for column in ("operator", "Headwater", "Flink SQL", "ratio", "planning", "results"):
        table.add_column(column, justify="right")
    with ExitStack() as stack:
        broker = stack.enter_context(running_broker())
        for topic, seed in (("events", 1), ("clicks", 2)):
            fill(broker.servers, topic, EVENTS if topic == "events" else EVENTS // 2, seed)
        flink = fetch_flink()
        for case in CASES:
            table.add_row(case, *compared(broker.servers, case, flink))
    console.print(table)


def compared(servers: str, case: str, flink: Path | None) -> list[str]:
    """Return the best of a few rounds of each side, in turns, as the table shows it."""
    ours, theirs, shares, equal = list[float](), list[float](), list[float](), "not compared"
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory(prefix="headwater-bench-") as directory:
            (planning, seconds), our_rows = run(
                [sys.executable, __file__, servers, case, directory], directory
            )
            ours.append(seconds)
            shares.append(planning / seconds)
        if flink is not None:
            with tempfile.TemporaryDirectory(prefix="headwater-bench-") as directory:
                script = str(Path(__file__).with_name("flink_sql.py"))
                (seconds,), their_rows = run([str(flink), script, servers, case, directory], directory)
                theirs.append(seconds)
            equal = told(our_rows, their_rows)
        rounded = [[round(each, 1) for each in side] for side in (ours, theirs)]
        console.print(f"[dim]{time.strftime('%H:%M:%S')} {case}: {rounded}, {equal}[/dim]")
    rates = [f"{EVENTS / min(each) / 1e6:.2f} M/s" if each else "-" for each in (ours, theirs)]
    ratio = f"{min(theirs) / min(ours):.2f}" if theirs else "-"
    return [*rates, ratio, f"{max(shares):.1%}", equal]


def run(command: list[str], directory: str) -> tuple[list[float], Results]:
    """Return the numbers that a side prints last, and what it has written."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, cwd=ROOT)
    if done.returncode:
        raise RuntimeError(done.stderr[-4000:])
    files = [path for path in (Path(directory) / "out").rglob("*") if path.is_file()]
    return [float(each) for each in done.stdout.splitlines()[-1].split()], dict(rows(files))


def rows(files: list[Path]) -> Iterator[tuple[tuple[str, ...], tuple[float, ...]]]:
    """Yield what identifies each result, a time and a name, and its numbers."""
    for path in files:
        with path.open(newline="") as file:
            for at, name, *numbers in csv.reader(file):
                moment = datetime.fromisoformat(at.replace("Z", "+00:00")).replace(tzinfo=None)
                yield (moment.isoformat(), name), tuple(map(float, numbers))


def told(ours: Results, theirs: Results) -> str:
    """Say whether results agree; Flink ends all windows at the end, and ours those that time has passed."""
    wrong = sum(theirs.get(key) != numbers for key, numbers in ours.items())
    if wrong or len(ours) < 0.9 * len(theirs):
        return f"{wrong:,} of {len(ours):,} DIFFER, Flink has {len(theirs):,}"
    return f"{len(ours):,} equal"


def fill(servers: str, topic: str, count: int, seed: int) -> None:
    """Write events as another program would, nearly in the order of time."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": servers})
    for made in admin.create_topics([NewTopic(topic, PARTITIONS, 1)]).values():
        made.result()
    options = {"bootstrap.servers": servers, "linger.ms": 20, "compression.type": "lz4"}
    producer = Producer({**options, "queue.buffering.max.messages": 1_000_000})
    rng = random.Random(seed)
    for number in range(count):
        user, at = rng.randrange(USERS), MILLIS + number * EVENTS // count // 2
        if (
            topic == "events"
        ):  # of rows that come out of order, Flink keeps no older version for an as-of join
            at += rng.randrange(3000)
        value = b'{"id":"%s-%07d","user":"user-%05d","amount":%d.25,"at":%d}' % (
            topic[:1].encode(), number, user, rng.randrange(1000), at,
        )  # fmt: skip
        producer.produce(topic, value=value, key=b"user-%05d" % user)
        if number % 1000 == 0:
            producer.poll(0)
    producer.flush()


def fetch_flink() -> Path | None:
    """Return the Python that has Flink, fetched the first time; None where it cannot be had."""
    sys.path.insert(0, str(ROOT / "tests" / "servers"))
    python, jars = FLINK / "bin" / "python", FLINK / "jars"
    try:
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", FLINK], check=True)
            subprocess.run([python, "-m", "pip", "install", "-q", "apache-flink==2.3.0"], check=True)
        if not list(jars.glob("*.jar")):
            copy = ["dependency:copy", f"-Dartifact={CONNECTOR}", f"-DoutputDirectory={jars}"]
            subprocess.run(["mvn", "-q", "-B", *copy], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        console.print(f"Flink is left out: {error}")
        return None
    return python


def child(servers: str, case: str, directory: Path) -> None:
    """Run ours, write the results as CSV, and print the seconds."""
    import headwater
    from headwater import Pipeline, agg, joins, windows
    from headwater.engine.runner import Runner
    from headwater.engine.spark.session import session

    web = Pipeline("web", log=f"kafka://{servers}", home=directory / "home")
    columns = "id STRING, user STRING, amount DOUBLE, at BIGINT"
    timing = {"event_time": "timestamp_millis(at)", "lateness": "10 seconds"}
    web.source("events", columns, **timing)
    totals = {"by": "user", "n": agg.count(), "total": agg.sum("amount")}
    if case == "within":
        web.source("clicks", columns, **timing)

        @web.view(key=["id", "click_id"])
        def result(events, clicks):  # type: ignore[no-untyped-def]
            """Events with the clicks of their user in the half second after."""
            return events.transform(
                joins.within(clicks, on="user", after="500 milliseconds", prefix="click_")
            )
    elif case == "as_of":
        web.table("clicks", columns, key="user", **timing)

        @web.view(key="id")
        def result(events, clicks):  # type: ignore[no-untyped-def]
            """Events with the click of their user that was the newest then."""
            return events.transform(joins.as_of(clicks, on="user", prefix="click_"))
    else:

        @web.view(key=["user", "window_start"])
        def result(events):  # type: ignore[no-untyped-def]
            """What each user spends."""
            window = windows.tumbling("1 minute", **totals)
            hop = windows.hopping("1 minute", "20 seconds", **totals)
            return events.transform(window if case == "tumbling" else hop)

    with Runner(web, spark=session(output=directory / "spark.log")) as runner:
        started = time.perf_counter()
        runner.catch_up()
        seconds = time.perf_counter() - started
        planning = sum(
            progress["durationMs"].get("latestOffset", 0) / 1000
            for query in runner.queries.values()
            for progress in query.spark.recentProgress
        )
    with headwater.open_views(web) as views:
        found = views["result"].scan().to_pylist()
    (directory / "out").mkdir()
    with (directory / "out" / "rows.csv").open("w", newline="") as file:
        if case == "within":
            lines = ((row["event_time"], f"{row['id']} {row['click_id']}", row["amount"]) for row in found)
        elif case == "as_of":
            lines = ((row["event_time"], row["id"], _or_none(row["click_at"])) for row in found)
        else:
            lines = ((row["window_start"], row["user"], row["n"], row["total"]) for row in found)
        csv.writer(file).writerows(lines)
    print(planning, seconds)


def _or_none(at: int | None) -> int:
    return -1 if at is None else at


if __name__ == "__main__":
    if len(sys.argv) == 4:
        child(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
    else:
        main()
