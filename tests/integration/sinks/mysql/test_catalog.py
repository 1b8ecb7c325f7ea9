"""Which tables are kept in a MariaDB database, and what is not ours there."""

from __future__ import annotations

import pytest

import mariadb_server
from headwater.errors import SchemaError, SinkRefused, UsageError
from headwater.sinks.mysql.sink import MySqlSink


def opened(server: mariadb_server.Server, database: str, columns: str = "id BIGINT") -> MySqlSink:
    return MySqlSink(server.url(database), "people", columns, "id")


def run(server: mariadb_server.Server, database: str, statement: str) -> None:
    with server.connect(database) as db, db.cursor() as cursor:
        cursor.execute(statement)


def test_a_table_of_the_catalogs_name_that_is_not_ours_is_not_touched(
    mariadb: mariadb_server.Server, mariadb_database: str
) -> None:
    run(mariadb, mariadb_database, "CREATE TABLE headwater_sinks (id INT)")
    with opened(mariadb, mariadb_database) as sink, pytest.raises(UsageError, match="is not Headwater's"):
        sink.begin()


def test_a_table_whose_record_is_gone_and_one_of_other_columns_are_refused(
    mariadb: mariadb_server.Server, mariadb_database: str
) -> None:
    with opened(mariadb, mariadb_database) as sink:
        sink.begin()
    with (
        opened(mariadb, mariadb_database, "id BIGINT, name STRING") as other,
        pytest.raises(SchemaError, match="has other columns or another key"),
    ):
        other.begin()
    run(mariadb, mariadb_database, "DELETE FROM headwater_sinks")
    with opened(mariadb, mariadb_database) as sink, pytest.raises(SinkRefused, match="record of how far"):
        sink.begin()


def test_a_table_of_a_similar_name_is_another_one(
    mariadb: mariadb_server.Server, mariadb_database: str
) -> None:
    run(mariadb, mariadb_database, "CREATE TABLE `people@home` (id INT)")
    with opened(mariadb, mariadb_database) as sink:
        assert sink.begin() == -1
        assert sink.read_back().batch == -1


@pytest.mark.parametrize(
    ("column", "why"),
    [
        ("VARCHAR(40) COLLATE utf8mb4_general_ci PRIMARY KEY", "compared by utf8mb4_general_ci"),
        ("VARCHAR(40) COLLATE utf8mb4_bin PRIMARY KEY", "compared by utf8mb4_bin"),
        ("VARCHAR(40) COLLATE utf8mb4_nopad_bin, UNIQUE (id(3))", "only the beginning"),
        ("VARCHAR(40) COLLATE utf8mb4_nopad_bin PRIMARY KEY", None),
        ("VARBINARY(40) PRIMARY KEY", None),
    ],
)
def test_a_table_in_which_keys_that_differ_are_the_same_is_refused(
    mariadb: mariadb_server.Server, mariadb_database: str, column: str, why: str | None
) -> None:
    run(mariadb, mariadb_database, f"CREATE TABLE people (id {column})")
    with opened(mariadb, mariadb_database, "id STRING") as sink:
        if why is None:
            assert sink.begin() == -1
            return
        with pytest.raises(SchemaError) as refused:
            sink.begin()
    assert why in (refused.value.detail or "")
