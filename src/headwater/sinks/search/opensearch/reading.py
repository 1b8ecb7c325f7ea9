"""What an index on a server holds, read back by a scroll: all documents as they were when it was opened.

Invariant: a document is a row only if it lies at the place of its key; the one that tells how far the index
has got is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import orjson
import pyarrow as pa

from headwater.errors import HeadwaterError
from headwater.sinks.change_version import is_of_batch
from headwater.sinks.json_rows import read_rows
from headwater.sinks.search.declaration import SearchSchema
from headwater.sinks.search.opensearch.mapping import MARKER
from headwater.sinks.search.opensearch.rest import Rest
from headwater.sinks.sink import Contents

_ROWS = 2_000
_ALIVE = "2m"


class IndexReading:
    """One look at the documents of an index; ``batch`` tells the number of its last batch."""

    def __init__(self, rest: Rest, index: str, declared: SearchSchema, batch: Callable[[], int]):
        self._rest, self._index, self._declared, self._batch = rest, index, declared, batch
        self._unreadable: list[Mapping[str, Any]] = []
        self._newest, self._scroll = 0, ""

    def contents(self, version: int) -> Contents:
        """Return what the index, which is of a version, holds; nothing, if there is none."""
        if self._rest.request("POST", f"/{self._index}/_refresh", allowed=(404,)).status == 404:
            return Contents()
        batch = self._batch()
        return Contents(batch, self._rows(), self._unreadable, lambda: self._is_settled(batch, version))

    def _is_settled(self, batch: int, version: int) -> bool:
        return self._batch() == batch and is_of_batch(self._newest, batch, version)

    def _rows(self) -> Iterator[pa.RecordBatch]:
        try:
            hits = self._next(f"/{self._index}/_search?scroll={_ALIVE}", _QUERY)
            while hits:
                yield self._decoded([hit for hit in hits if hit["_id"] != MARKER])
                hits = self._next("/_search/scroll", {"scroll": _ALIVE, "scroll_id": self._scroll})
        finally:
            with suppress(HeadwaterError):  # the server forgets it by itself
                self._rest.request("DELETE", "/_search/scroll", orjson.dumps({"scroll_id": self._scroll}))

    def _next(self, path: str, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        answer = self._rest.request("POST", path, orjson.dumps(body)).body
        self._scroll = answer["_scroll_id"]
        return list(answer["hits"]["hits"])

    def _decoded(self, hits: list[dict[str, Any]]) -> pa.RecordBatch:
        # A document at a time, as the server's answer is.
        self._newest = max(self._newest, *(int(hit.get("_version", 0)) for hit in hits), 0)
        texts = [orjson.dumps(hit.get("_source")) for hit in hits]
        rows, others = read_rows([str(hit["_id"]) for hit in hits], texts, self._declared)
        self._unreadable += others
        return rows


_QUERY = {"size": _ROWS, "sort": ["_doc"], "version": True}
