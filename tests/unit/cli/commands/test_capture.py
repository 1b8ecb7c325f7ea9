"""``headwater capture``: a database's changes in the log."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Run

import headwater
from headwater import CaptureStatus
from headwater.capture.state import SnapshotProgress
from headwater.cli.commands.capture import _show
from headwater.errors import SourceUnavailable


@pytest.fixture
def database(tmp_path: Path) -> str:
    db = sqlite3.connect(tmp_path / "crm.db")
    with db:
        db.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT)")
        db.execute("INSERT INTO customers VALUES (1, 'ada'), (2, 'bob')")
    db.close()
    return f"sqlite:{tmp_path / 'crm.db'}"


def test_a_database_is_described_as_a_pipeline_declares_it(run: Run, database: str) -> None:
    result = run("capture", "describe", database)
    assert result.stdout == (
        'shop.table("customers", "id BIGINT, name STRING", key="id", captured="crm.customers")\n'
    )


def test_tables_are_captured_into_the_log(run: Run, database: str) -> None:
    result = run("capture", database, "--tables", "customers", "--until-caught-up")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("capture: ended, 2 rows of snapshots, 0 changes, ")
    lines = run("consume", "customers", "--from", "earliest", "--format", "ndjson").stdout.splitlines()
    assert sorted(json.loads(line)["name"] for line in lines) == ["ada", "bob"]
    told = run(
        "capture", "start", database, "--tables", "customers", "--until-caught-up", "--format", "ndjson"
    )
    assert json.loads(told.stdout)["snapshots"]["customers"]["rows"] == 2


def test_what_a_capture_has_made_is_removed(run: Run, database: str) -> None:
    run("capture", database, "--tables", "customers", "--until-caught-up")
    result = run("capture", "drop", database)
    assert result.stdout == 'removed capture "capture" from the database\n'
    db = sqlite3.connect(database.removeprefix("sqlite:"))
    left = db.execute("SELECT name FROM sqlite_schema WHERE name LIKE '%headwater%'").fetchall()
    db.close()
    assert left == []


def test_a_new_snapshot_is_asked_for(run: Run, database: str) -> None:
    run("capture", database, "--tables", "customers", "--until-caught-up")
    result = run("capture", "resnapshot", "customers")
    assert result.stdout == 'a new snapshot of table "customers" is made\n'
    again = run("capture", database, "--tables", "customers", "--until-caught-up", "--format", "ndjson")
    assert json.loads(again.stdout)["snapshots"]["customers"]["done"]


def test_a_table_that_is_not_there_is_told(run: Run, database: str) -> None:
    result = run("capture", database, "--tables", "customer", "--until-caught-up")
    assert result.exit_code == 2
    assert result.stderr == ('error: the database has no table "customer"\nhint: did you mean "customers"?\n')


def test_a_database_that_is_not_there_is_told(run: Run, tmp_path: Path) -> None:
    result = run("capture", f"sqlite:{tmp_path / 'none.db'}", "--tables", "customers", "--until-caught-up")
    assert result.exit_code != 0
    assert "none.db" in result.stderr
    assert not (tmp_path / "none.db").exists()


def test_captured_tables_are_verified_against_their_database(
    run: Run, database: str, file: Path, tmp_path: Path
) -> None:
    file.write_text(
        f"""
from headwater import Pipeline
shop = Pipeline("shop", log="file:{tmp_path / "data"}")
shop.capture("crm", "{database}")
shop.table("customers", "id BIGINT, name STRING", key="id", captured="crm.customers")
"""
    )
    log = f"file:{tmp_path / 'data'}"
    run("capture", database, "--tables", "customers", "--until-caught-up", "--name", "shop.crm", "--log", log)
    result = run("verify", str(file), "--against", "source")
    assert (result.exit_code, "all rows are equal" in result.stdout) == (0, True), result.stderr
    with headwater.open(log) as opened, opened.producer("customers") as somebody:
        somebody.send({"id": 1, "name": "wrong"})
    result = run("verify", str(file), "--against", "source")
    assert result.exit_code == 1
    assert "should be (id=1, name=ada), is (id=1, name=wrong)" in result.stderr
    assert run("verify", str(file), "customers", "--against", "source").exit_code == 1


def test_a_capture_that_waits_says_for_what(capsys: pytest.CaptureFixture[str]) -> None:
    away = SourceUnavailable("the database cannot be read", detail="connection refused")
    _show(CaptureStatus("crm", "waiting", error=away), "lines")
    said = capsys.readouterr().err
    assert 'warning: capture "crm" waits: the database cannot be read (connection refused)' in said


def test_a_snapshot_is_shown_with_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    progress = {"customers": SnapshotProgress((7,), 500)}
    _show(CaptureStatus("crm", "snapshot", snapshots=progress, expected={"customers": 2_000}), "lines")
    assert "crm: snapshot, 500 of about 2,000 rows of snapshots (0/s), 0 changes" in capsys.readouterr().out


def test_how_a_capture_is_doing_is_shown(run: Run, database: str) -> None:
    run("capture", database, "--tables", "customers", "--until-caught-up", "--max-retained", "1 GB")
    said = run("capture", "status").stdout.splitlines()
    assert said[0].startswith("capture: ended, 2 rows of snapshots, 0 changes")
    assert said[1].startswith("noted ") and said[1].endswith(" s ago")
    assert json.loads(run("capture", "status", "--format", "ndjson").stdout)["state"] == "ended"
    assert 'no capture "other"' in run("capture", "status", "--name", "other").stderr
