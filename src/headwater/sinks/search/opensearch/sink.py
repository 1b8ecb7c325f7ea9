"""The sink of an index on a server that has no transactions.

A commit looks at the marker, a document of the index itself that has epoch and batch number; writes the rows,
each with its version; and then replaces the marker, if nobody has since it looked (``if_seq_no``). Invariant:
the marker names a batch only when all its rows are there; no row or deletion takes the place of a newer one,
whoever sends it and whenever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import orjson
import pyarrow as pa

from headwater.errors import SchemaError, SinkRefused, UsageError
from headwater.sinks import crash
from headwater.sinks.change_version import change_version
from headwater.sinks.fencing import dropped, taken_over
from headwater.sinks.search.declaration import SearchSchema, declare_search
from headwater.sinks.search.opensearch import address, bulk
from headwater.sinks.search.opensearch.mapping import MARKER, check_names, index_settings
from headwater.sinks.search.opensearch.reading import IndexReading
from headwater.sinks.search.opensearch.rest import Rest
from headwater.sinks.sink import Batch, Contents, NumberedSink
from headwater.values.keyed import settle

_TRIES = 20


@dataclass(frozen=True)
class _Marker:
    """How far an index has got."""

    key: str
    batch: int = -1
    epoch: int = 0
    filled: bool = False
    positions: tuple[str, ...] = ()
    clock: int | None = None
    version: int = 1


@dataclass(frozen=True)
class _Stored:
    """A marker, and the place in the server's history at which it was read."""

    marker: _Marker
    condition: str


class OpenSearchSink(NumberedSink):
    """Keeps an index of the rows of a node on an OpenSearch or Elasticsearch server, by key.

    The index is made if it is not there; one that is has to be empty. A document's id is the row's key; of
    several rows with one key the last one counts; ``_deleted`` deletes. **A batch is not one transaction**:
    rows carry versions (batch and epoch), the number is written after them, and readers see them when the
    batch is there. After a crash in the middle they may see a part, until the batch comes again and changes
    the rest. A runner that was replaced is fenced when it looks at the marker; rows that it has under way
    then are older than any that its successor writes, and are left out or replaced.
    """

    def __init__(
        self,
        url: str,
        schema: str | pa.Schema,
        key: str | tuple[str, ...],
        text: str | Sequence[str],
        *,
        version: int = 1,
    ):
        place = address.parse(url)
        self._index, self._version = address.index_of(place.index, version), version
        self._declared = declare_opensearch(url, schema, key, text)
        self._rest = Rest(place, self._declared.what)
        self._epoch: int | None = None

    def begin(self) -> int:
        """Take over from any other runner; return the number of the last batch committed, or -1."""
        self._create()
        for _ in range(_TRIES):
            stored = self._stored()
            marker = self._begun(stored)
            if self._store(marker, stored):
                break
        else:
            raise SinkRefused(
                f"other runners keep taking over {self._declared.what}", hint="let one of them run"
            )
        crash.point("opensearch: begun")
        self._epoch, self._last = marker.epoch, marker.batch
        return marker.batch

    def commit(self, batch: Batch) -> bool:
        """Write a batch; return False if it was there before."""
        if self._epoch is None:
            raise UsageError(f"sink of {self._declared.what} has not begun", hint="call begin() first")
        settled = settle(batch.rows, self._declared)
        stored = self._current()
        if batch.number <= stored.marker.batch:
            return False
        for body in bulk.requests(
            settled, self._declared, change_version(batch.number, self._epoch, self._version)
        ):
            crash.point("opensearch: before rows")
            bulk.check(
                self._rest.request("POST", f"/{self._index}/_bulk?{bulk.ANSWER}", body), self._declared.what
            )
        crash.point("opensearch: rows written")
        if len(settled):
            self._rest.request("POST", f"/{self._index}/_refresh")
            crash.point("opensearch: rows visible")
        self._finish(batch, stored, not settled.deleted.all())
        self._last = batch.number
        crash.point("opensearch: committed")
        return True

    def read_back(self) -> Contents:
        """Return the documents of the index."""
        reading = IndexReading(self._rest, self._index, self._declared, self._stored_batch)
        return reading.contents(self._version)

    def close(self) -> None:
        """Close the connection."""
        self._rest.close()

    def _stored_batch(self) -> int:
        stored = self._stored()
        return -1 if stored is None else stored.marker.batch

    def _create(self) -> None:
        if self._rest.request("GET", f"/{self._index}", allowed=(404,)).status != 404:
            return
        made = self._rest.request("PUT", f"/{self._index}", index_settings(self._declared), allowed=(400,))
        if made.status == 400 and made.reason != "resource_already_exists_exception":
            raise SinkRefused(f"{self._declared.what} cannot be made", detail=made.reason)
        crash.point("opensearch: index made")

    def _begun(self, stored: _Stored | None) -> _Marker:
        """Return the marker of a new epoch, unless the index is not what it was."""
        rows, key = self._count(), ",".join(self._declared.key)
        if stored is None:
            if rows:
                raise SinkRefused(
                    f"{self._declared.what} holds documents, but not the one that tells how far they go",
                    hint="write to an index of its own, or delete this one and compute the node anew",
                )
            return _Marker(key, epoch=1, version=self._version)
        if stored.marker.version != self._version:
            raise dropped(self._declared.what, self._version)
        if stored.marker.key != key:
            raise SchemaError(
                f"{self._declared.what} has another key",
                detail=f"it has ({stored.marker.key}), asked for ({key})",
                hint="write to another index",
            )
        if stored.marker.filled and rows <= 1:
            raise SinkRefused(
                f"{self._declared.what} is empty, though it had rows",
                hint="restore it from a snapshot; or delete it, and compute the node anew",
            )
        return replace(stored.marker, epoch=stored.marker.epoch + 1)

    def _count(self) -> int:
        self._rest.request("POST", f"/{self._index}/_refresh")
        return int(self._rest.request("GET", f"/{self._index}/_count").body["count"])

    def _current(self) -> _Stored:
        """Return the marker, or say that another runner has taken over, or that batches are gone."""
        stored = self._stored()
        if stored is not None and stored.marker.version != self._version:
            raise dropped(self._declared.what, self._version)
        if stored is None or (stored.marker.epoch == self._epoch and stored.marker.batch < self._last):
            raise SinkRefused(
                f"{self._declared.what} has lost batches that were committed",
                detail=f"batch {self._last} is not there: the index was deleted, or restored",
                hint="restore it; or delete it, and compute the node anew",
            )
        if stored.marker.epoch != self._epoch:
            raise taken_over(self._declared.what)
        return stored

    def _finish(self, batch: Batch, stored: _Stored, rows: bool) -> None:
        marker = replace(
            stored.marker,
            batch=batch.number,
            positions=tuple(map(str, batch.positions)),
            clock=batch.watermark,
            # Deletions may have emptied it, so only rows that were just written tell something for sure.
            filled=rows if len(batch.rows) else stored.marker.filled,
        )
        if self._store(marker, stored):
            return
        now = self._stored()
        if now is None or now.marker != marker:  # ours, if an answer was lost and the request sent again
            raise taken_over(self._declared.what)

    def _stored(self) -> _Stored | None:
        answer = self._rest.request("GET", f"/{self._index}/_doc/{MARKER}", allowed=(404,))
        if answer.status == 404:
            return None
        stored = answer.body["_source"][MARKER]
        condition = f"if_seq_no={answer.body['_seq_no']}&if_primary_term={answer.body['_primary_term']}"
        return _Stored(_Marker(**{**stored, "positions": tuple(stored["positions"])}), condition)

    def _store(self, marker: _Marker, stored: _Stored | None) -> bool:
        """Replace the marker; return False if it is no longer the one that was read."""
        condition = "op_type=create" if stored is None else stored.condition
        body = orjson.dumps({MARKER: asdict(marker)})
        return (
            self._rest.request("PUT", f"/{self._index}/_doc/{MARKER}?{condition}", body, (409,)).status != 409
        )


def declare_opensearch(
    url: str, schema: str | pa.Schema, key: str | tuple[str, ...], text: str | Sequence[str]
) -> SearchSchema:
    """Check a declaration."""
    declared = declare_search(f'index "{address.parse(url).index}"', schema, key, text)
    check_names(declared)
    return declared
