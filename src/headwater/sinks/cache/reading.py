"""What a cache holds, read back: every key under its prefix.

Redis has no moments: keys are looked at one after the other, while a runner may write. Invariant: each key is
returned once, and what is no row of ours is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.sinks.cache.connection import translated_errors
from headwater.sinks.cache.declaration import OWN, CachePlace, escaped
from headwater.sinks.change_version import is_of_batch
from headwater.sinks.json_rows import PLACE, TEXT, read_rows
from headwater.sinks.sink import Contents
from headwater.values.keyed import KeyedSchema

if TYPE_CHECKING:
    import redis

_ROWS = 5_000
VERSION_OF = re.compile(rb'\{"_version":(\d+)')
"""Finds the version at the beginning of a row."""


def published(client: redis.Redis, place: CachePlace) -> int:
    """Return the version that readers see at a place; 1 where there is none yet."""
    found = client.hget(place.marker, "version")
    return 1 if found is None else int(found)


class CacheReading:
    """One look at the keys of a cache."""

    def __init__(self, client: redis.Redis, keyed: KeyedSchema, place: CachePlace, version: int):
        self._client, self._keyed, self._place, self._version = client, keyed, place, version
        self._unreadable: list[Mapping[str, Any]] = []
        self._newest = 0

    def contents(self, expires: bool) -> Contents:
        """Return what the cache holds; ``expires`` says whether its rows go by themselves."""
        batch = self._batch()
        return Contents(batch, self._rows(), self._unreadable, lambda: self._is_settled(batch), expires)

    def _batch(self) -> int:
        with translated_errors(self._keyed.what):
            found = self._client.hget(self._place.marker, "batch")
        return -1 if found is None else int(found)

    def _is_settled(self, batch: int) -> bool:
        return self._batch() == batch and is_of_batch(self._newest, batch, self._version)

    def _rows(self) -> Iterator[pa.RecordBatch]:
        with translated_errors(self._keyed.what):
            places = self._places()
            while part := list(islice(places, _ROWS)):
                found = dict(zip(part, self._client.mget(part), strict=True))
                there = {place: text for place, text in found.items() if isinstance(text, bytes)}
                self._note_others([place for place in part if place not in there])
                yield self._decoded(list(there), list(there.values()))

    def _places(self) -> Iterator[bytes]:
        """Yield each key under the prefix once: the server may name one twice."""
        seen = set[int]()
        places: Iterator[bytes] = self._client.scan_iter(match=escaped(self._place.prefix) + "*", count=_ROWS)
        begins = self._place.prefix.encode()
        for place in places:
            if place.startswith(OWN.encode()) and not begins.startswith(OWN.encode()):
                continue  # a record of ours, under a prefix as short as "h"
            if (known := hash(place)) not in seen:
                seen.add(known)
                yield place

    def _note_others(self, places: list[bytes]) -> None:
        """Take in keys that are no texts, but lists, hashes and the like, unless they have just gone."""
        with self._client.pipeline(transaction=False) as asked:
            for place in places:
                asked.type(place)
            kinds = asked.execute()
        self._unreadable += [
            {PLACE: self._key(place), TEXT: f"a {kind.decode()}, and no text"}
            for place, kind in zip(places, kinds, strict=True)
            if kind not in (b"none", b"string")
        ]

    def _key(self, place: bytes) -> str:
        return place.decode(errors="replace").removeprefix(self._place.prefix)

    def _decoded(self, places: list[bytes], texts: list[bytes]) -> pa.RecordBatch:
        # A row at a time, as the protocol of the server is.
        found = (VERSION_OF.match(text) for text in texts)
        self._newest = max(self._newest, *(int(match[1]) for match in found if match), 0)
        keys = list(map(self._key, places))
        rows, others = read_rows(keys, texts, self._keyed)
        self._unreadable += others
        return rows
