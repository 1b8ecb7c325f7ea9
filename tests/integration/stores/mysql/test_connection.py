"""Connections to a real MariaDB that are made anew when they break."""

from __future__ import annotations

import pytest

import mariadb_server
from headwater.errors import SinkRefused
from headwater.stores.mysql import address
from headwater.stores.mysql.connection import MySqlTransactions, Transaction


def opened(server: mariadb_server.Server, database: str) -> MySqlTransactions:
    return MySqlTransactions(address.parse(server.url(database)), "the test", 10.0)


def test_an_action_is_repeated_when_its_connection_breaks(
    mariadb: mariadb_server.Server, mariadb_database: str
) -> None:
    attempts: list[int] = []

    def action(db: Transaction) -> int:
        ((id,),) = db.rows("SELECT CONNECTION_ID()")
        attempts.append(id)
        if len(attempts) == 1:
            with mariadb.connect() as other:
                other.cursor().execute(f"KILL {id}")
        db.rows("SELECT 1")
        return int(id)

    connection = opened(mariadb, mariadb_database)
    assert connection.run(action) == attempts[1] != attempts[0]
    connection.close()


def test_what_fails_for_good_is_undone_and_not_tried_again(
    mariadb: mariadb_server.Server, mariadb_database: str
) -> None:
    connection = opened(mariadb, mariadb_database)
    connection.run(lambda db: db.rows("CREATE TABLE t (id INT)"))

    def action(db: Transaction) -> None:
        db.rows("INSERT INTO t VALUES (1)")
        db.rows("SELECT * FROM nowhere")

    with pytest.raises(SinkRefused, match="cannot be used"):
        connection.run(action)
    assert connection.run(lambda db: db.rows("SELECT * FROM t")) == []
    assert connection.run(lambda db: db.is_mariadb)
    connection.close()
