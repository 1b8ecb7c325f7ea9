"""The connection to a Redis or Valkey server, and what its errors mean.

Invariant: neither the URL nor a password is part of any message; only what may pass by itself is waited for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headwater.errors import HeadwaterError, SinkRefused, SinkUnavailable, UsageError
from headwater.sinks.cache.declaration import translated

try:
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry
except ModuleNotFoundError as error:
    if (error.name or "").split(".")[0] != "redis":
        raise
    raise UsageError(
        "support for Redis is not installed", hint="run `pip install 'headwater[cache]'`"
    ) from None

_CONNECT_SECONDS, _ANSWER_SECONDS = 10.0, 60.0
_AWAY = (
    redis.BusyLoadingError, redis.ReadOnlyError, redis.OutOfMemoryError,
    redis.exceptions.MasterDownError, redis.exceptions.TryAgainError,
)  # fmt: skip
"""What a server says that may be another a moment later."""
_REFUSED = (redis.AuthenticationError, redis.exceptions.AuthorizationError)


def connect(url: str) -> redis.Redis:
    """Return a client; it connects when it is used."""
    # Once more and no oftener: a connection that has been idle may be closed, and a pipeline waits by itself.
    client: redis.Redis = redis.Redis.from_url(
        translated(url),
        socket_connect_timeout=_CONNECT_SECONDS,
        socket_timeout=_ANSWER_SECONDS,
        retry=Retry(NoBackoff(), 1),
    )
    return client


@contextmanager
def translated_errors(what: str) -> Iterator[None]:
    """Raise errors of the client as our own."""
    try:
        yield
    except redis.RedisError as error:
        raise _sink_error(error, what) from None  # its cause may show the address with its password


def _sink_error(error: redis.RedisError, what: str) -> HeadwaterError:
    detail = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
    if isinstance(error, _REFUSED) or "NOAUTH" in detail or "WRONGPASS" in detail:
        return SinkRefused(
            f"the server of {what} refuses us", detail=detail, hint="check the user and the password"
        )
    if isinstance(error, redis.exceptions.NoPermissionError):
        return SinkRefused(
            f"the server of {what} refuses a command", detail=detail, hint="allow it in its ACL"
        )
    if "CROSSSLOT" in detail or isinstance(error, redis.exceptions.MovedError):
        hint = "use a server that is no Redis Cluster: a batch is written by one script"
        return SinkRefused(f"{what} cannot be kept in a cluster", detail=detail, hint=hint)
    if isinstance(error, (redis.ConnectionError, redis.TimeoutError, *_AWAY)):
        return SinkUnavailable(
            f"the server of {what} cannot be used", detail=detail, hint="see whether it runs"
        )
    return SinkRefused(f"the server of {what} says no", detail=detail)
