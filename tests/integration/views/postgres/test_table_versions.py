"""A PostgreSQL table built anew beside the old one."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

import follower_kit
import versions_kit
from follower_kit import Follower
from headwater.errors import UsageError


@pytest.mark.parametrize("check", versions_kit.CHECKS)
def test_a_table_is_built_anew(check: Callable[[Follower], None], database: str) -> None:
    check(follower_kit.postgres_table(database))


def test_a_table_of_your_own_is_not_replaced(database: str) -> None:
    with psycopg.connect(database) as db:
        db.execute("CREATE TABLE people (id BIGINT PRIMARY KEY, name TEXT)")
    follower = follower_kit.postgres_table(database)
    versions_kit.write(follower, 1, versions_kit.OLD)
    with pytest.raises(UsageError, match="cannot be replaced"):
        versions_kit.versions_of(follower).prepare(2)
    assert dict(follower.held()) == versions_kit.OLD
