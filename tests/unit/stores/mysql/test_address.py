"""Which database a URL of MySQL means."""

from __future__ import annotations

import pytest

from headwater.errors import UsageError
from headwater.stores.mysql.address import parse


def test_a_url_has_everything() -> None:
    found = parse("mysql://ada:p%40ss@db.example:3307/shop?ssl_ca=/etc/ca.pem")
    assert (found.host, found.port, found.user, found.password) == ("db.example", 3307, "ada", "p@ss")
    assert (found.database, found.arguments["ssl_ca"]) == ("shop", "/etc/ca.pem")


def test_what_is_missing_is_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYSQL_PWD", "secret")
    found = parse("mariadb://db/shop")
    assert (found.port, found.user, found.password) == (3306, "root", "secret")


def test_neither_the_title_nor_its_representation_has_the_password() -> None:
    found = parse("mysql://ada:secret@db/shop")
    assert "secret" not in found.title + repr(found)


@pytest.mark.parametrize(
    "url",
    [
        "mysql://db",
        "mysql://db/",
        "mysql://ada:x@db:port/shop",
        "mysql://a:se/cret@db/shop",
        "mysql://db/a?b=c",
    ],
)
def test_a_url_that_is_none_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse(url)
    assert "cret" not in str(refused.value)
