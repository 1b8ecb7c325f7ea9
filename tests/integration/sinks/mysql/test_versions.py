"""A table in MariaDB built anew beside the old one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

import follower_kit
import mariadb_server
import versions_kit
from follower_kit import Follower
from headwater.errors import UsageError


def follower(server: mariadb_server.Server, database: str) -> Follower:
    return follower_kit.mysql_table(server.url(database), partial(server.connect, database))


@pytest.mark.parametrize("check", versions_kit.CHECKS)
def test_a_table_is_built_anew(
    check: Callable[[Follower], None], mariadb: mariadb_server.Server, mariadb_database: str
) -> None:
    check(follower(mariadb, mariadb_database))
    with mariadb.connect(mariadb_database) as db, db.cursor() as cursor:
        cursor.execute("SHOW TABLES")
        assert sorted(name for (name,) in cursor.fetchall()) == ["headwater_sinks", "people"]
        cursor.execute("SELECT count(*) FROM headwater_sinks")
        assert cursor.fetchone() == (1,)


def test_a_table_of_your_own_is_not_replaced(mariadb: mariadb_server.Server, mariadb_database: str) -> None:
    with mariadb.connect(mariadb_database) as db, db.cursor() as cursor:
        cursor.execute("CREATE TABLE people (id BIGINT PRIMARY KEY, name TEXT)")
    people = follower(mariadb, mariadb_database)
    versions_kit.write(people, 1, versions_kit.OLD)
    with pytest.raises(UsageError, match="cannot be replaced"):
        versions_kit.versions_of(people).prepare(2)
    assert dict(people.held()) == versions_kit.OLD
