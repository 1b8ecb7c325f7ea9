"""A cache built anew beside the old one, on a real server."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import follower_kit
import redis_server
import versions_kit
from follower_kit import Follower
from headwater.sinks.cache.connection import connect


@pytest.mark.parametrize("check", versions_kit.CHECKS)
def test_a_cache_is_built_anew(check: Callable[[Follower], None], redis: redis_server.Server) -> None:
    follower = follower_kit.cache(redis.url)
    check(follower)
    (prefix,) = follower.target.tables
    with connect(redis.url) as client:
        assert not list(client.scan_iter(match=f"headwater:*build:*{prefix}*", count=1000))


def test_rows_keep_the_time_that_they_have_left(redis: redis_server.Server) -> None:
    follower = follower_kit.cache(redis.url, ttl="1 hour")
    versions_kit.write(follower, 2, versions_kit.NEW)
    versions_kit.versions_of(follower).publish(versions_kit.SCHEMA, 2)
    (prefix,) = follower.target.tables
    with connect(redis.url) as client:
        assert 3_500_000 < client.pttl(f"{prefix}4") <= 3_600_000
        assert client.pttl(f"headwater:cache:{prefix}") == -1
