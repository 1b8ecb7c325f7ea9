"""The versions of an index on a server: each an index of its own, and the name an alias of the one in force.

The first has the name itself. A switch makes the name an alias of the next and removes the index before it,
in one request, which OpenSearch carries out at once. Invariant: an index that we have not made stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import orjson
import pyarrow as pa

from headwater.errors import SinkRefused
from headwater.sinks import crash
from headwater.sinks.search.opensearch import address
from headwater.sinks.search.opensearch.mapping import OURS
from headwater.sinks.search.opensearch.rest import Rest
from headwater.sinks.search.opensearch.sink import OpenSearchSink
from headwater.sinks.sink import Sink
from headwater.sinks.versions import TargetVersions


class IndexVersions(TargetVersions):
    """The versions of the index that a URL names."""

    def __init__(self, url: str, key: str | tuple[str, ...], text: str | Sequence[str]):
        self._url, self._declared = url, (key, text)
        self._address = address.parse(url)

    def published(self) -> int:
        """Return the version that readers see."""
        with self._rest() as rest:
            return self._number(self._behind(rest))

    def open(self, schema: pa.Schema, version: int) -> Sink:
        """Return the sink of a version."""
        return OpenSearchSink(self._url, schema, *self._declared, version=version)

    def prepare(self, version: int) -> None:
        """Delete the index that an unfinished rebuild left."""
        with self._rest() as rest:
            self._check_ours(rest)
            rest.request("DELETE", f"/{self._of(version)}", allowed=(404,))

    def publish(self, schema: pa.Schema, version: int) -> None:
        """Make the name an alias of a version, and remove the index that readers have seen so far."""
        with self._rest() as rest:
            before = self._behind(rest)
            if self._number(before) == version and before is not None:
                return
            add = {"add": {"index": self._of(version), "alias": self._name}}
            remove = [] if before is None else [{"remove_index": {"index": before}}]
            crash.point("opensearch: before the switch")
            rest.request("POST", "/_aliases", orjson.dumps({"actions": [add, *remove]}))
            crash.point("opensearch: switched")

    @property
    def _name(self) -> str:
        return self._address.index

    def _of(self, version: int) -> str:
        return address.index_of(self._name, version)

    def _behind(self, rest: Rest) -> str | None:
        """Return the index that readers of the name see, if there is one."""
        found = rest.request("GET", f"/{self._name}/_alias", allowed=(404,))
        return None if found.status == 404 else next(iter(found.body), None)

    def _number(self, index: str | None) -> int:
        """Return the version that an index is of."""
        number = (index or "").removeprefix(f"{self._name}@")
        return int(number) if number.isdecimal() and index != self._name else 1

    def _check_ours(self, rest: Rest) -> None:
        found = rest.request("GET", f"/{self._name}/_mapping", allowed=(404,))
        if found.status == 404:
            return
        if not all(each["mappings"].get("_meta", {}).get(OURS) for each in found.body.values()):
            raise SinkRefused(
                f'index "{self._name}" cannot be built anew',
                detail="it was there before its sink, and has a mapping of its own",
                hint="let the sink write to an index that is not there yet",
            )

    @contextmanager
    def _rest(self) -> Iterator[Rest]:
        rest = Rest(self._address, f'index "{self._name}"')
        try:
            yield rest
        finally:
            rest.close()
