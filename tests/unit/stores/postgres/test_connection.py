"""Connection strings are checked before anything connects, and never tell a password. No server."""

from __future__ import annotations

import pytest

from headwater.errors import UsageError
from headwater.stores.postgres import connection
from headwater.stores.postgres.connection import PostgresReaders

URL = "postgresql://shop:hush@127.0.0.1:5432/shop"


def test_settings_of_our_own_are_added_beside_those_that_are_given() -> None:
    found = connection.parts(connection.checked(f"{URL}?options=-csearch_path%3Dsales&connect_timeout=3"))
    assert found["options"].startswith("-csearch_path=sales -c idle_in_transaction_session_timeout=")
    assert found["options"].endswith("-c timezone=UTC")
    assert (found["connect_timeout"], found["password"]) == ("3", "hush")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://shop:zq@zq@127.0.0.1/shop",
        "postgresql://shop:12/zqzq@127.0.0.1/shop",
        "mysql://zqzq/shop",
    ],
)
def test_a_password_that_spoils_the_rest_is_refused_without_being_told(url: str) -> None:
    with pytest.raises(UsageError, match="invalid PostgreSQL connection string") as refused:
        connection.checked(url)
    assert "zq" not in str(refused.value)


def test_what_may_be_shown_has_no_password() -> None:
    shown = connection.parts(connection.without_secrets(f"{URL}?sslpassword=hush"))
    assert shown == {"user": "shop", "host": "127.0.0.1", "port": "5432", "dbname": "shop"}


def test_a_connection_that_is_lent_is_nobody_elses_and_is_lent_again() -> None:
    readers = PostgresReaders(URL, "the store of views", 1.0)
    with readers.lend() as one, readers.lend() as other:
        assert one is not other
    with readers.lend() as again:
        assert again in (one, other)
    readers.close()
    with readers.lend() as new:
        assert new not in (one, other)


def test_more_than_a_few_idle_connections_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_IDLE", 1)
    readers = PostgresReaders(URL, "the store of views", 1.0)
    with readers.lend(), readers.lend():
        pass
    assert len(readers._idle) == 1
