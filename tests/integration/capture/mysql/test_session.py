"""The ordinary connection."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.capture.mysql.session import MySqlSession
from headwater.errors import SourceRefused, SourceUnavailable
from headwater.stores.mysql.address import parse


@pytest.fixture
def session(url: str) -> Any:
    made = MySqlSession(parse(url))
    yield made
    made.close()


def test_a_connection_that_broke_unnoticed_is_made_anew(session: Any, execute: Any) -> None:
    number = session.run(lambda db: db.value("SELECT CONNECTION_ID()"))
    execute(f"KILL {number}")
    assert session.run(lambda db: db.value("SELECT CONNECTION_ID()")) != number


def test_dates_are_left_as_they_are(session: Any) -> None:
    query = "SELECT DATE '2024-01-02', CAST('-01:02:03' AS TIME), b'101'"
    assert session.run(lambda db: db.rows(query)) == [("2024-01-02", "-01:02:03", b"\x05")]


def test_a_mistake_is_refused_and_an_absent_server_waited_for(session: Any) -> None:
    with pytest.raises(SourceRefused):
        session.run(lambda db: db.rows("SELECT nonsense"))
    with pytest.raises(SourceUnavailable) as away:
        MySqlSession(parse("mysql://127.0.0.1:1/shop")).run(lambda db: db.rows("SELECT 1"))
    assert not isinstance(away.value, SourceRefused)
