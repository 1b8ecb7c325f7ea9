"""What errors of a Redis server mean."""

from __future__ import annotations

import pytest
import redis

from headwater.errors import SinkRefused, SinkUnavailable
from headwater.sinks.cache.connection import connect, translated_errors


@pytest.mark.parametrize(
    ("error", "kind"),
    [(redis.ConnectionError("refused"), SinkUnavailable), (redis.TimeoutError(), SinkUnavailable),
     (redis.ReadOnlyError("replica"), SinkUnavailable), (redis.BusyLoadingError("loading"), SinkUnavailable),
     (redis.OutOfMemoryError("used memory > maxmemory"), SinkUnavailable),
     (redis.AuthenticationError("invalid password"), SinkRefused),
     (redis.ResponseError("WRONGTYPE"), SinkRefused), (redis.ResponseError("CROSSSLOT keys"), SinkRefused),
     (redis.exceptions.NoPermissionError("no"), SinkRefused)],
)  # fmt: skip
def test_only_what_may_pass_by_itself_is_waited_for(error: Exception, kind: type[Exception]) -> None:
    with pytest.raises(kind) as told, translated_errors('cache "customer:"'):
        raise error
    assert type(told.value) is kind
    assert told.value.__cause__ is None


def test_valkey_is_spoken_to_as_redis_is() -> None:
    with connect("valkey://127.0.0.1:1/3") as client:
        assert client.connection_pool.connection_kwargs["db"] == 3
