"""Which database a URL means."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

import pytest

from changes_kit import CAPTURED, newest
from headwater.capture.opening import open_capture, open_source
from headwater.capture.sqlite.source import SqliteSource
from headwater.errors import SourceUnavailable, UsageError
from headwater.log.open import open as open_log


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("oracle:scott", 'no database "oracle:" can be captured'),
        ("crm.db", "no URL of a database"),
        ("sqlite:", "no URL of a database"),
        ("", "no URL of a database"),
        ("host=db password=se:cret", "no URL of a database"),
    ],
)
def test_what_is_no_database_is_refused_and_nothing_of_it_shown(url: str, told: str) -> None:
    with pytest.raises(UsageError, match=told) as refused:
        open_source(url, "crm")
    assert "password" not in str(refused.value)


@pytest.mark.parametrize("scheme", ["mysql", "MariaDB"])
def test_mysql_is_opened_without_a_connection(scheme: str) -> None:
    from headwater.capture.mysql.source import MySqlSource

    with open_source(f"{scheme}://ada:secret@db.invalid/shop", "crm") as source:
        assert isinstance(source, MySqlSource)
        assert "secret" not in source.title


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.startswith("headwater.capture.mysql")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pymysqlreplication", None)
    with pytest.raises(UsageError, match="not installed") as missing:
        open_source("mysql://db/shop", "crm")
    assert "headwater[mysql]" in str(missing.value.hint)


def test_a_capture_closes_what_it_was_opened_with(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "crm.db")
    with db:
        db.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT)")
        db.execute("INSERT INTO customers VALUES (1, 'a')")
    db.close()
    with open_source(f"sqlite:{tmp_path / 'crm.db'}", "crm") as source:
        assert isinstance(source, SqliteSource)
    log = f"file:{tmp_path / 'log'}"
    with open_capture(f"sqlite:{tmp_path / 'crm.db'}", log, "crm", [CAPTURED]) as capture:
        capture.catch_up()
    with open_log(log) as opened:
        assert newest(opened) == {1: "a"}


def test_a_file_that_is_not_there_is_told_and_not_made(tmp_path: Path) -> None:
    missing = tmp_path / "crm.db"
    with (
        pytest.raises(SourceUnavailable, match="crm"),
        open_capture(f"sqlite:{missing}", "memory:", "crm", [CAPTURED]),
    ):
        pass
    assert not missing.exists()


def test_the_driver_of_postgresql_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(UsageError, match="PostgreSQL support is not installed") as missing:
        open_source("postgresql://db/shop", "crm")
    assert "headwater[postgres]" in str(missing.value.hint)


def test_a_slot_that_is_given_in_the_url_is_no_setting_of_the_library() -> None:
    with open_source("postgresql://ada:secret@db.invalid/shop?slot=mine&publication=ours", "crm") as source:
        assert source.title == 'PostgreSQL database "shop" on db.invalid'
