"""Which servers are refused, and why."""

# ruff: noqa: S608  # statements of a test's own

from __future__ import annotations

from typing import Any

import pytest

import mariadb_server
from headwater.capture.mysql.source import MySqlSource
from headwater.errors import SourceRefused
from mariadb_server import Server

SETTINGS = [
    ("binlog_format", "MIXED", "ROW"),
    ("binlog_row_image", "MINIMAL", "FULL"),
    ("binlog_row_metadata", "MINIMAL", "FULL"),
    ("log_bin_compress", "ON", "OFF"),
]


@pytest.mark.parametrize(("name", "wrong", "right"), SETTINGS)
def test_a_setting_that_hides_changes_is_refused(
    capture: Any, execute: Any, name: str, wrong: str, right: str
) -> None:
    execute("CREATE TABLE t (id INT PRIMARY KEY)", f"SET GLOBAL {name} = '{wrong}'")
    try:
        with pytest.raises(SourceRefused) as refused:
            capture().begin(["t"], None)
    finally:
        execute(f"SET GLOBAL {name} = '{right}'")
    assert name in str(refused.value.detail) and f"SET GLOBAL {name} = '{right}'" in str(refused.value.hint)
    capture().begin(["t"], None)


def test_a_server_without_a_binlog_is_refused(mariadb: Server) -> None:
    with mariadb_server.running_server(log_bin=None) as other, mariadb_server.own_database(other) as name:
        with other.connect(name) as db:
            db.cursor().execute("CREATE TABLE t (id INT PRIMARY KEY)")
        with MySqlSource(other.url(name), "shop") as source, pytest.raises(SourceRefused) as refused:
            source.begin(["t"], None)
    assert "no binlog" in str(refused.value.detail)


def test_a_user_needs_rights(mariadb: Server, mariadb_database: str, capture: Any, execute: Any) -> None:
    execute("CREATE TABLE t (id INT PRIMARY KEY)", "CREATE OR REPLACE USER reader@'%' IDENTIFIED BY 'secret'")
    url = mariadb.url(mariadb_database, "reader:secret")
    execute(f"GRANT SELECT ON {mariadb_database}.* TO reader@'%'")
    for granted in ("REPLICATION CLIENT", "REPLICATION SLAVE"):
        with pytest.raises(SourceRefused) as refused:
            capture(url).begin(["t"], None)
        assert "REPLICATION SLAVE" in str(refused.value.hint)
        assert "secret" not in str(refused.value)
        execute(f"GRANT {granted} ON *.* TO reader@'%'")
    capture(url).begin(["t"], None)
    with pytest.raises(SourceRefused) as denied:
        capture(mariadb.url(mariadb_database, "reader:wrong")).tables()
    assert "password" in str(denied.value.hint)


def test_what_is_behind_a_place_is_retained(capture: Any, execute: Any) -> None:
    execute("CREATE TABLE t (id INT PRIMARY KEY, a TEXT)")
    source = capture()
    source.begin(["t"], None)
    empty = source.retained()
    execute("FLUSH BINARY LOGS", f"INSERT INTO t VALUES (1, '{'x' * 5000}')")
    assert source.retained() - empty > 5000
    source.confirm(source.end())
    assert source.retained() < 100  # MariaDB notes a checkpoint of the binlog, 40 bytes, when it likes
