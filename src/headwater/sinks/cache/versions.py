"""The versions of a cache: the next is built under keys of our own, which then get those that readers read.

Redis runs the commands of a transaction (``MULTI``) one after the other and nothing else meanwhile, so
readers see the old rows or the new ones. Invariant: no row of an older version is left when a switch is done;
one that was broken off in the middle is completed by whoever comes next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.errors import SinkRefused
from headwater.sinks import crash
from headwater.sinks.cache.connection import connect, translated_errors
from headwater.sinks.cache.declaration import OWN, CachePlace, escaped
from headwater.sinks.cache.reading import VERSION_OF, published
from headwater.sinks.cache.sink import CacheSink
from headwater.sinks.change_version import rebuild_of
from headwater.sinks.sink import Sink
from headwater.sinks.versions import TargetVersions

if TYPE_CHECKING:
    import redis

_KEYS = 5_000


@dataclass(frozen=True)
class CacheVersions(TargetVersions):
    """The versions of the cache under a prefix."""

    url: str
    key: str | tuple[str, ...]
    prefix: str
    ttl: str | timedelta | None = None

    def published(self) -> int:
        """Return the version that readers see."""
        with translated_errors(self._what), connect(self.url) as client:
            return published(client, self._public)

    def open(self, schema: pa.Schema, version: int) -> Sink:
        """Return the sink of a version."""
        return CacheSink(self.url, schema, self.key, prefix=self.prefix, ttl=self.ttl, version=version)

    def prepare(self, version: int) -> None:
        """Delete the keys that an unfinished rebuild left."""
        with translated_errors(self._what), connect(self.url) as client:
            self._delete(client, self._public.beside(version))

    def publish(self, schema: pa.Schema, version: int) -> None:
        """Rename the keys of a version to those that readers read, and delete the others, at once."""
        beside = self._public.beside(version)
        with translated_errors(self._what), connect(self.url) as client:
            if published(client, self._public) != version:
                crash.point("cache: before the switch")
                self._switch(client, beside, version)
                crash.point("cache: switched")
            self._sweep(client, version)
            self._delete(client, beside)

    @property
    def _what(self) -> str:
        return f'cache "{self.prefix}"'

    @property
    def _public(self) -> CachePlace:
        return CachePlace(self.prefix)

    def _switch(self, client: redis.Redis, beside: CachePlace, version: int) -> None:
        built = client.hgetall(beside.marker)
        if not built:
            raise SinkRefused(f"version {version} of {self._what} is gone", hint="rebuild it again")
        new = {key.removeprefix(beside.prefix.encode()) for key in _keys(client, beside.prefix)}
        old = {key.removeprefix(self.prefix.encode()) for key in _keys(client, self.prefix)}
        epoch = int(client.hget(self._public.marker, "epoch") or 0)
        # One who runs the old version is fenced by the greater epoch.
        record: dict[Any, Any] = {**built, b"epoch": epoch + int(built[b"epoch"]) + 1, b"version": version}
        with client.pipeline(transaction=True) as transaction:
            for name in new:
                transaction.rename(beside.prefix.encode() + name, self.prefix.encode() + name)
            for name in old - new:
                transaction.delete(self.prefix.encode() + name)
            transaction.delete(self._public.marker, beside.marker)
            transaction.hset(self._public.marker, mapping=record)
            answers = transaction.execute(raise_on_error=False)
        # A row may have gone by itself since it was looked for: there is nothing to rename then.
        for error in (each for each in answers if isinstance(each, Exception)):
            if "no such key" not in str(error):
                raise error

    def _sweep(self, client: redis.Redis, version: int) -> None:
        """Delete rows that the old runner has written in the last moment."""
        for part in _parts(_keys(client, self.prefix)):
            texts: list[Any] = client.mget(part)
            found = [VERSION_OF.match(text or b"") for text in texts]
            older = [
                key
                for key, match in zip(part, found, strict=True)
                if match and rebuild_of(int(match[1])) < version
            ]
            if older:
                client.delete(*older)

    def _delete(self, client: redis.Redis, place: CachePlace) -> None:
        for part in _parts(_keys(client, place.prefix)):
            client.delete(*part)
        gone = f"{OWN}gone:{place.prefix}"
        for part in _parts(_keys(client, gone)):
            client.delete(*part)
        client.delete(place.marker)


def _keys(client: redis.Redis, prefix: str) -> Iterator[bytes]:
    keys: Iterator[bytes] = client.scan_iter(match=escaped(prefix) + "*", count=_KEYS)
    return keys


def _parts(keys: Iterator[bytes]) -> Iterator[list[bytes]]:
    while part := list(islice(keys, _KEYS)):
        yield part
