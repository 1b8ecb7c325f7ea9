"""What a cache is declared to hold, and where."""

from __future__ import annotations

import pytest

from headwater.errors import SchemaError, UsageError
from headwater.sinks.cache.declaration import database, declare_cache, translated


def test_a_database_is_known_without_who_connects() -> None:
    assert database("redis://shop:secret@cache.example:6380/2") == "cache.example:6380/2"
    assert database("valkeys://cache.example") == "cache.example:6379/0"
    assert database("unix:///run/redis.sock?db=1") == "/run/redis.sock"
    assert translated("valkey://host/0") == "redis://host/0"


@pytest.mark.parametrize("url", ["http://u:secret@host", "host:6379", "redis://u:secret@host:port/0"])
def test_what_is_no_url_of_a_server_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(UsageError) as refused:
        database(url)
    assert "secret" not in str(refused.value)


def test_names_of_our_own_are_refused() -> None:
    assert declare_cache("id BIGINT", "id", "customer:").what == 'cache "customer:"'
    for prefix in ("", "headwater:x"):
        with pytest.raises(UsageError, match="prefix"):
            declare_cache("id BIGINT", "id", prefix)
    with pytest.raises(SchemaError, match="reserved"):
        declare_cache("id BIGINT, _version INT", "id", "customer:")
