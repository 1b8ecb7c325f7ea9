"""Captures of a pipeline, and by themselves."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

import headwater
from changes_kit import newest
from headwater import BackgroundCapture, Pipeline
from headwater.api.captures import captured_tables, check_captures, describe_lines, workers
from headwater.errors import PipelineError, UsageError


@pytest.fixture
def database(tmp_path: Path) -> str:
    db = sqlite3.connect(tmp_path / "crm.db")
    with db:
        db.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT)")
        db.execute("CREATE TABLE notes (text TEXT)")
        db.execute("INSERT INTO customers VALUES (1, 'ada')")
    db.close()
    return f"sqlite:{tmp_path / 'crm.db'}"


def shop(
    database: str, tmp_path: Path, columns: str = "id BIGINT, name STRING", table: str = "customers"
) -> Pipeline:
    declared = Pipeline("shop", log=f"file:{tmp_path / 'data'}")
    declared.capture("crm", database)
    declared.table("customers", columns, key="id", captured=f"crm.{table}")
    return declared


def test_the_tables_of_a_database_are_described(database: str) -> None:
    assert [table.name for table in headwater.describe_database(database)] == ["customers", "notes"]
    assert describe_lines(database) == [
        'shop.table("customers", "id BIGINT, name STRING", key="id", captured="crm.customers")',
        '# table "notes" cannot be captured: it has no primary key',
    ]


def test_a_capture_runs_by_itself_until_it_is_stopped(database: str, tmp_path: Path) -> None:
    log = f"file:{tmp_path / 'data'}"
    with BackgroundCapture(headwater.capture_tables(database, "customers", log=log, name="crm")) as work:
        wait_for(work)
    work.result()
    with headwater.open(log) as opened:
        assert newest(opened) == {1: "ada"}
    headwater.drop_capture(database, "crm")
    db = sqlite3.connect(database.removeprefix("sqlite:"))
    left = db.execute("SELECT name FROM sqlite_schema WHERE name LIKE '%headwater%'").fetchall()
    db.close()
    assert left == []


@pytest.mark.parametrize(("table", "told"), [("clients", "has no table"), ("notes", "no primary key")])
def test_a_table_that_cannot_be_captured_is_refused(database: str, table: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        headwater.capture_tables(database, table, log="memory:", name="crm").catch_up()


def test_a_capture_by_itself_goes_on_with_the_columns_that_its_topic_has(
    database: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = f"file:{tmp_path / 'data'}"
    headwater.capture_tables(database, "customers", log=log, name="crm").catch_up()
    db = sqlite3.connect(database.removeprefix("sqlite:"))
    with db:
        db.execute("ALTER TABLE customers ADD COLUMN tier TEXT")
        db.execute("INSERT INTO customers VALUES (2, 'bob', 'gold')")
    db.close()
    headwater.capture_tables(database, "customers", log=log, name="crm").catch_up()
    with headwater.open(log) as opened:
        assert newest(opened) == {1: "ada", 2: "bob"}
    assert 'is captured without "tier"' in caplog.text


def test_the_captures_of_a_pipeline_fill_its_tables(database: str, tmp_path: Path) -> None:
    pipeline = shop(database, tmp_path)
    [worker] = workers(pipeline)
    worker.catch_up()
    assert worker.status().snapshots["customers"].rows == 1
    [table] = captured_tables(pipeline, pipeline.captures[0])
    assert (table.schema.names, table.event_time) == (["id", "name"], None)
    with headwater.open(pipeline.log) as log:
        assert newest(log) == {1: "ada"}
        assert log.topic("customers").event_time == "committed_at"


def test_declared_columns_are_compared_with_those_of_the_database(database: str, tmp_path: Path) -> None:
    check_captures(shop(database, tmp_path))
    with pytest.raises(PipelineError, match="is not as it is declared") as refused:
        check_captures(shop(database, tmp_path, "id INT, surname STRING"))
    assert 'column "id" is INTEGER, which INT does not hold' in str(refused.value)
    assert 'there is no column "surname"' in str(refused.value)
    with pytest.raises(PipelineError, match='has no table "clients"'):
        check_captures(shop(database, tmp_path, table="clients"))
    assert not (tmp_path / "data").exists()


def test_a_table_whose_first_snapshot_has_not_begun_may_be_asked_for_another(
    database: str, tmp_path: Path
) -> None:
    pipeline = shop(database, tmp_path)
    stopped = threading.Event()
    stopped.set()
    next(workers(pipeline)).catch_up(stopped)  # begun, and nothing more
    headwater.resnapshot(pipeline.log, "shop.crm", "customers")
    next(workers(pipeline)).catch_up()
    with headwater.open(pipeline.log) as log:
        assert newest(log) == {1: "ada"}


def test_a_capture_that_runs_makes_a_new_snapshot_when_it_is_asked(database: str, tmp_path: Path) -> None:
    log = f"file:{tmp_path / 'data'}"
    with pytest.raises(UsageError, match='no capture "crm"'):
        headwater.resnapshot(log, "crm", "customers")
    with BackgroundCapture(headwater.capture_tables(database, "customers", log=log, name="crm")) as work:
        wait_for(work)
        with headwater.open(log) as opened, opened.producer("customers") as somebody:
            somebody.send_batch([{"id": 1, "name": "wrong"}, {"id": 99, "name": "wrong"}])
        with pytest.raises(UsageError, match='no table "customer"'):
            headwater.resnapshot(log, "crm", "customer")
        headwater.resnapshot(log, "crm", "customers")
        db = sqlite3.connect(database.removeprefix("sqlite:"))
        with db:  # so that the capture notices that it was fenced
            db.execute("INSERT INTO customers VALUES (2, 'bob')")
        db.close()
        with headwater.open(log) as opened:
            while newest(opened) != {1: "ada", 2: "bob"}:
                assert not work.ended(0.02)
        wait_for(work)


def outbox_shop(database: str, tmp_path: Path, **settings: Any) -> Pipeline:
    db = sqlite3.connect(database.removeprefix("sqlite:"))
    with db:
        db.execute("CREATE TABLE IF NOT EXISTS outbox (id INTEGER PRIMARY KEY, kind TEXT, payload TEXT)")
        db.execute("INSERT INTO outbox (kind, payload) VALUES ('sold', '{\"id\": 7, \"at\": 86400000}')")
    db.close()
    declared = shop(database, tmp_path)
    declared.source(
        "orders",
        "id BIGINT, at BIGINT",
        event_time="timestamp_millis(at)",
        **{"captured": "crm.outbox", "event": "payload", "headers": ["kind"], **settings},
    )
    return declared


def test_an_outbox_of_a_pipeline_fills_its_source(database: str, tmp_path: Path) -> None:
    pipeline = outbox_shop(database, tmp_path, delete=True)
    check_captures(pipeline)
    [worker] = workers(pipeline)
    worker.catch_up()
    with headwater.open(pipeline.log) as log:
        [row] = [row for part in log.read("orders", meta=True) for row in part.to_pylist()]
        assert (row["id"], dict(row["_headers"])["kind"], newest(log)) == (7, b"sold", {1: "ada"})
        assert (log.topic("orders").event_time, log.topic("orders").cleanup) == (None, "delete")
    db = sqlite3.connect(database.removeprefix("sqlite:"))
    assert db.execute("SELECT count(*) FROM outbox").fetchone() == (0,)
    db.close()
    assert [verdict.node for verdict in headwater.verify_source(pipeline)] == ["customers"]


def test_an_outbox_is_compared_with_what_is_declared(database: str, tmp_path: Path) -> None:
    with pytest.raises(PipelineError) as refused:
        check_captures(outbox_shop(database, tmp_path, event="paylod", headers=["trace"]))
    assert 'there is no column "paylod" (did you mean "payload"?)' in str(refused.value)
    assert 'there is no column "trace"' in str(refused.value)
    with pytest.raises(PipelineError, match="not as it is declared") as refused:
        check_captures(outbox_shop(database, tmp_path, event="id"))
    assert 'column "id" is INTEGER, which holds no JSON' in str(refused.value)


def test_no_new_snapshot_is_made_of_an_outbox(database: str, tmp_path: Path) -> None:
    pipeline = outbox_shop(database, tmp_path)
    [worker] = workers(pipeline)
    worker.catch_up()
    with pytest.raises(UsageError, match="is an outbox, of which no new snapshot is made"):
        headwater.resnapshot(pipeline.log, "shop.crm", "outbox")


def test_an_outbox_that_was_stopped_is_told_anew(database: str, tmp_path: Path) -> None:
    pipeline = outbox_shop(database, tmp_path)
    [worker] = workers(pipeline)
    worker.catch_up()
    statements = (
        "CREATE TABLE another (id INTEGER PRIMARY KEY, kind TEXT, payload TEXT)",
        "INSERT INTO another SELECT * FROM outbox",
        "DROP TABLE outbox",
        "ALTER TABLE another RENAME TO outbox",
    )
    db = sqlite3.connect(database.removeprefix("sqlite:"), isolation_level=None)
    for each in statements:
        db.execute(each)
    [worker] = workers(pipeline)
    worker.catch_up()
    assert "made anew" in worker.status().stopped["outbox"]
    assert count(pipeline) == 1
    headwater.resnapshot(pipeline.log, "shop.crm", "outbox")
    db.execute("INSERT INTO outbox (payload) VALUES ('{\"id\": 8}')")
    db.close()
    [worker] = workers(pipeline)
    worker.catch_up()
    assert (worker.status().stopped, count(pipeline)) == ({}, 3)


def count(pipeline: Pipeline) -> int:
    with headwater.open(pipeline.log) as log:
        return sum(len(part) for part in log.read("orders"))


def wait_for(work: BackgroundCapture) -> None:
    while work.status().state != "streaming":
        assert not work.ended(0.01)


def test_how_a_capture_is_doing_is_told_to_other_processes(database: str, tmp_path: Path) -> None:
    pipeline = shop(database, tmp_path)
    assert [(each.capture, each.state) for each in headwater.capture_statuses(pipeline)] == [
        ("crm", "starting")
    ]
    [worker] = workers(pipeline)
    worker.catch_up()
    [told] = headwater.capture_statuses(pipeline)
    assert (told.capture, told.state, told.snapshots["customers"].rows) == ("crm", "ended", 1)
    assert told.noted is not None and told.position == worker.status().position
    assert headwater.capture_status(pipeline.log, "shop.crm").capture == "shop.crm"
    with pytest.raises(UsageError, match='no capture "crm"'):
        headwater.capture_status(pipeline.log, "crm")


@pytest.mark.parametrize("limit", [{"max_retained": 0}, {"alert_retained": "1 GB"}, {"max_retained": True}])
def test_a_limit_that_is_no_number_of_bytes_is_refused(limit: dict[str, object]) -> None:
    with pytest.raises(PipelineError, match="_retained of capture"):
        Pipeline("shop").capture("crm", "sqlite:./crm.db", **limit)  # type: ignore[arg-type]
