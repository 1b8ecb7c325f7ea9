"""Views in PostgreSQL: proved, rebuilt, reset and looked at as those in SQLite, and through an outage."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner, Result
from pyspark.sql import DataFrame, SparkSession

import headwater
from headwater import Pipeline, scan
from headwater.cli import main
from headwater.engine.figures.progress import progress
from headwater.engine.proof.verify import verify
from headwater.engine.runner import Runner
from headwater.errors import PipelineError, SinkUnavailable
from headwater.pipeline import loading, targets
from headwater.views import open_views
from postgres_server import Server
from runner_kit import running

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SHOP = """
from headwater import Pipeline, latest

shop = Pipeline("shop", log={log!r}, views={url!r})
shop.source("orders", "id BIGINT, who STRING, cents BIGINT, at TIMESTAMP", event_time="at", key="who")


@shop.view(key="who")
def newest(orders):
    return orders.transform(latest(by="who"))
"""


def add(state: dict[str, Any] | None, event: dict[str, Any]) -> dict[str, Any]:
    before = state or {"n": 0, "cents": 0}
    return {"n": before["n"] + 1, "cents": before["cents"] + event["cents"]}


def shop(url: str, database: str) -> Pipeline:
    """Return a pipeline with a view and a sink in PostgreSQL, and a view in its own store."""
    pipeline = Pipeline("shop", log=url)
    schema = "id BIGINT, who STRING, cents BIGINT, at TIMESTAMP, about VARIANT"
    pipeline.source("orders", schema, event_time="at", key="who")

    @pipeline.view(key="who", store=database)
    def totals(orders: DataFrame) -> DataFrame:
        return orders.transform(scan(add, by="who", schema="n BIGINT, cents BIGINT"))

    @pipeline.view(key="id")
    def here(orders: DataFrame) -> DataFrame:
        return orders.select("id", "who")

    @pipeline.view(key="id", store=database)
    def there(orders: DataFrame) -> DataFrame:
        return orders.select("id", "who", "about")

    @pipeline.sink(targets.postgres(database, "archive", "id"))
    def archived(orders: DataFrame) -> DataFrame:
        return orders.select("id", "who", "cents")

    return pipeline


class Feed:
    """Orders, and what must come of them."""

    def __init__(self, url: str):
        self._log, self._sent = headwater.open(url), 0

    def send(self, count: int) -> Any:
        rows = [self._order(number) for number in range(self._sent, self._sent + count)]
        self._sent += count
        with self._log.producer("orders", id="till") as producer:
            producer.send_batch(rows)
            return producer.flush()

    def finish(self) -> None:
        with self._log.producer("orders", id="till") as producer:
            producer.mark(NOON + timedelta(days=9))

    def expected(self) -> dict[str, tuple[int, int]]:
        found: dict[str, tuple[int, int]] = {}
        for order in map(self._order, range(self._sent)):
            n, cents = found.get(order["who"], (0, 0))
            found[order["who"]] = (n + 1, cents + order["cents"])
        return found

    def close(self) -> None:
        self._log.close()

    def _order(self, number: int) -> dict[str, Any]:
        about = f'{{"n": {number}, "a": [1.0]}}'
        at = NOON + timedelta(seconds=number)
        return {"id": number, "who": f"c{number % 5}", "cents": number * 7 % 100, "at": at, "about": about}


@pytest.fixture
def feed(url: str) -> Iterator[Feed]:
    with headwater.open(url) as log:
        schema = "id BIGINT, who STRING, cents BIGINT, at TIMESTAMP, about VARIANT"
        log.create_topic("orders", schema, event_time="at", key="who")
    made = Feed(url)
    yield made
    made.close()


@pytest.fixture
def make(url: str, database: str, spark: SparkSession) -> Callable[[], Runner]:
    return lambda: Runner(shop(url, database), spark=spark, patient=True)


def found(runner: Runner) -> dict[str, tuple[int, int]]:
    return {row["who"]: (row["n"], row["cents"]) for row in runner.store.view("totals").scan().to_pylist()}


def check(runner: Runner, feed: Feed, database: str) -> None:
    """Everything is exact, and proved."""
    assert found(runner) == feed.expected()
    ids = set(range(feed._sent))
    for view in ("here", "there"):
        assert {row["id"] for row in runner.store.view(view).scan().to_pylist()} == ids
    with open_views(database) as views:
        assert {row["id"] for row in views["archive"].scan().to_pylist()} == ids
    for name in ("totals", "here", "there"):
        verdict = verify(runner, name)
        assert verdict.ok, list(verdict.examples())


def test_a_view_in_postgres_is_proved_rebuilt_and_reset(
    make: Callable[[], Runner], feed: Feed, database: str
) -> None:
    feed.send(200)
    with make() as runner:
        feed.finish()
        runner.catch_up()
        check(runner, feed, database)
        told = {each.node: each.rows for each in progress(runner.pipeline, runner.log)}
        assert told == {"totals": 5, "here": 200, "there": 200, "archived": None}
    with psycopg.connect(database) as db:
        db.execute("UPDATE totals SET cents = cents + 1 WHERE who = 'c3'")
        db.execute("DELETE FROM there WHERE id = 7")
    with make() as runner:
        wrong = verify(runner, "totals")
        assert [(a["who"], b["cents"] - a["cents"]) for a, b in wrong.different] == [("c3", 1)]
        assert [row["id"] for row in verify(runner, "there").missing] == [7]
        runner.rebuild("totals")
        runner.rebuild("there")
    with make() as runner:
        check(runner, feed, database)
        assert runner.store.view("totals").version == 2
        runner.reset("totals", "latest")
        assert found(runner) == {}
    with psycopg.connect(database) as db:
        tables = db.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()").fetchall()
    kept = {"totals", "totals_changes", "there", "there_changes", "archive", "headwater_sinks"}
    assert {name for (name,) in tables} == kept


def test_a_runner_goes_on_with_a_view_that_another_has_rebuilt(
    make: Callable[[], Runner], feed: Feed, database: str
) -> None:
    feed.send(50)
    with make() as runner:
        runner.catch_up()
        with make() as other:
            other.rebuild("there")
        feed.send(50)
        feed.finish()
        runner.catch_up()
        check(runner, feed, database)
        assert runner.nodes["there"].version.number == runner.store.view("there").version == 2


def test_a_database_that_has_lost_a_view_is_noticed(
    make: Callable[[], Runner], feed: Feed, database: str
) -> None:
    feed.send(10)
    with make() as runner:
        runner.catch_up()
        runner.store.drop("there")
    with make() as runner:
        with pytest.raises(PipelineError, match='view "there" is older than its checkpoint'):
            runner.catch_up()
        runner.rebuild("there")
    with make() as runner:
        feed.finish()
        runner.catch_up()
        check(runner, feed, database)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["a restart", "a crash"])
def test_a_live_pipeline_outlasts_an_outage_of_the_server(
    make: Callable[[], Runner],
    feed: Feed,
    server: Server,
    database: str,
    how: signal.Signals,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("headwater.views.postgres.store.RETRY_TIMEOUT", "500 milliseconds")
    monkeypatch.setattr(
        "headwater.engine.batch.retry.MAX_ATTEMPTS", 1
    )  # any other failure would be the end of a node
    with make() as runner:
        with running(runner):
            first = feed.send(300)
            _until(lambda: runner.store.names() == ["here", "there", "totals"])
            runner.store.view("here").count(wait_for=first, timeout=60)
            runner.store.view("there").count(wait_for=first, timeout=60)
            server.stop(how)
            try:
                during = feed.send(300)
                runner.store.view("here").count(wait_for=during, timeout=60)  # what is not there goes on
                _until(lambda: runner.nodes["there"].query.retry.failures > 2)
                assert isinstance(runner.nodes["there"].error, SinkUnavailable)
                assert not runner.nodes["there"].query.broken
            finally:
                server.start()
            last = feed.send(300)
            feed.finish()
            for view in ("here", "there"):
                runner.store.view(view).count(wait_for=last, timeout=120)
            _until(lambda: found(runner) == feed.expected())
            with open_views(database) as views:
                views["archive"].count(wait_for=last, timeout=120)
        check(runner, feed, database)


def _until(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + 90
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.05)


# The command line


@pytest.fixture
def command(
    tmp_path: Path, database: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Result]]:
    """Commands where ``shop.py`` has run, with a password in the URL of its views."""
    monkeypatch.setattr(loading, "_OURS", {})
    monkeypatch.delitem(sys.modules, "shop", raising=False)  # of a test before
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    place = database.replace("postgres@", "postgres:geheim@")
    (tmp_path / "shop.py").write_text(SHOP.format(log=f"file:{tmp_path}/data", url=place))
    pipeline = loading.load("shop.py")
    with Runner(pipeline, spark=spark, patient=True) as runner:
        with runner.log.producer("orders") as producer:
            producer.send_batch([{"id": n, "who": f"c{n}", "cents": n, "at": NOON} for n in range(3)])
            producer.mark(NOON + timedelta(1))
        runner.catch_up()

    def invoke(*args: object) -> Result:
        result = CliRunner().invoke(main, [str(arg) for arg in args])
        assert "geheim" not in result.stdout + result.stderr
        return result

    yield invoke
    sys.modules.pop("shop", None)
    noted = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "shop.py"]
    assert not [path for path in noted if b"geheim" in path.read_bytes()]


def test_the_commands_read_views_in_postgres(command: Callable[..., Result], server: Server) -> None:
    listed = json.loads(command("view", "list", "--format", "ndjson").stdout)
    assert (listed["view"], listed["rows"], listed["key"], listed["version"]) == ("newest", 3, "who", 1)
    assert json.loads(command("view", "get", "newest", "c1", "--format", "ndjson").stdout)["cents"] == 1
    rows = command("view", "scan", "newest", "--from", "c1", "--format", "ndjson").stdout.splitlines()
    assert [json.loads(row)["id"] for row in rows] == [1, 2]
    changes = command("view", "changes", "newest", "--pipeline", "shop.py", "--format", "ndjson").stdout
    assert [json.loads(line)["sequence"] for line in changes.splitlines()] == [1, 2, 3]
    waiting = command("view", "get", "newest", "c1", "--wait-for", "orders:0=9", "--timeout", "0.1")
    assert waiting.exit_code == 1
    assert 'not up to "orders:0=9": 6 records are missing' in waiting.stderr
    status = json.loads(command("status", "shop.py", "--format", "ndjson").stdout)
    assert (status["rows"], status["batch"] is not None, status["lag"]) == (3, True, 0)
    server.stop()
    try:
        result = command("status", "shop.py")
        assert result.exit_code == 0
        assert 'note: rows of view "newest" are not known' in result.stderr
        assert command("view", "list").exit_code == 1
    finally:
        server.start()
