"""A view as a feed: its changes by their numbers, and its rows of one moment.

Invariant: a change is told with the rows as they are in the view; its JSON is made once, whoever follows.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headwater.errors import OffsetLost, UsageError
from headwater.serve.push.feed import Count, FeedChunk, Offsets, PushFeed, PushItem, PushSnapshot
from headwater.serve.push.filters import FilterTexts, PushFilter
from headwater.serve.push.row_json import encode_rows, encode_values, key_rows
from headwater.values.keyed import KeyedSchema
from headwater.views import Change, View, Views, version_of_change

LARGEST_SNAPSHOT, SNAPSHOT_BYTES = 1_000_000, 256 << 20
_ROWS = 1_000
_NUMBER = re.compile("[0-9]{1,18}")
_STOP_SECONDS = 1.0
"""How often to look whether to stop, while nothing is committed."""


@dataclass(frozen=True, slots=True)
class ChangeItem(PushItem):
    """A change of a view with its rows as JSON."""

    change: Change
    key: bytes
    old: bytes
    new: bytes
    whole: bytes
    """The change as one who follows everything sees it."""
    partition = 0

    @property
    def reached(self) -> int:  # type: ignore[override]
        """The change's number."""
        return self.change.sequence

    @property
    def id(self) -> str:  # type: ignore[override]
        """The change's number, as text."""
        return str(self.change.sequence)

    def data(self, filter: PushFilter) -> bytes | None:
        """Return the change; of a row that comes into sight it is an insert, out of sight a delete."""
        if filter.everything:
            return self.whole
        before, after = filter.takes(self.change.old), filter.takes(self.change.new)
        if not (before or after):
            return None
        kind = self.change.kind if before and after else "delete" if before else "insert"
        if kind == self.change.kind:
            return self.whole
        rows = (self.old, b"null") if kind == "delete" else (b"null", self.new)
        return _json(self.change, kind, self.key, *rows)


class ViewFeed(PushFeed):
    """The changes of a view."""

    event = "change"

    def __init__(self, views: Views, view: str, name: str):
        self._views, self._view, self.name = views, view, name
        self._key: tuple[str, ...] = ()

    def filter(self, texts: FilterTexts) -> PushFilter:
        """Return a filter by leading columns of the key, and by columns."""
        view = self._open()
        self._key = view.key
        return texts.read(f'view "{self._view}"', view.schema, view.key)

    def check(self, since: str) -> None:
        """Refuse what is no number."""
        if since not in ("earliest", "latest") and not _NUMBER.fullmatch(since):
            raise UsageError(
                f'a change of view "{self._view}" has a number, not "{since:.40}"',
                hint='since is the id of the last event, "earliest" or "latest"',
            )

    def resolve(self, since: str) -> Offsets:
        """Return the position after a change."""
        return self.newest() if since == "latest" else {0: 0 if since == "earliest" else int(since)}

    def id(self, offsets: Offsets) -> str:
        """Return the number of the last change."""
        return str(offsets[0])

    def about(self, offsets: Offsets) -> dict[str, Any]:
        """Return the number of the last change, the version, and the columns of the key."""
        return {"sequence": offsets[0], "version": version_of_change(offsets[0]), "key": self._key}

    def newest(self) -> Offsets:
        """Return the number of the newest change."""
        return {0: self._open().sequence()}

    def read(self, offsets: Offsets, filter: PushFilter) -> Iterator[FeedChunk]:
        """Yield the changes after a number, as long as there are more."""
        since = offsets[0]
        while True:
            with self._views.reading(self._view, None) as reading:
                try:
                    chunk, keyed = reading.chunk(since), reading.entry().keyed
                except UsageError as error:
                    newest = reading.sequence()
                    if since <= newest:
                        raise
                    raise _ahead(error, newest) from None
            if not chunk:
                return
            since = chunk[-1].sequence
            seen = [each for each in chunk if filter.takes(each.old) or filter.takes(each.new)]
            yield FeedChunk(_items(seen, keyed), {0: since})

    def follow(self, offsets: Offsets, stop: threading.Event) -> Iterator[FeedChunk]:
        """Yield changes as they are committed."""
        since = offsets[0]
        with self._views.reading(self._view, None) as reading:
            while not stop.is_set():
                for _ in reading.commits(_STOP_SECONDS):
                    while chunk := reading.chunk(since):
                        since = chunk[-1].sequence
                        yield FeedChunk(_items(chunk, reading.entry().keyed), {0: since})
                    if stop.is_set():
                        return

    def snapshot(self, filter: PushFilter, count: Count) -> PushSnapshot:
        """Return the rows that a filter leaves; they are taken at once, so that no client holds the store."""
        view = self._open()
        self._key = view.key  # a rebuild may have given it another
        with view.snapshot(filter.key or None, LARGEST_SNAPSHOT + 1) as taken:
            batches = self._within_bounds((filter.select(batch) for batch in taken.batches), count)
        return PushSnapshot({0: taken.sequence}, _pieces(batches))

    def _within_bounds(self, batches: Iterable[pa.RecordBatch], count: Count) -> list[pa.RecordBatch]:
        """Return all rows; where they are too many or too large, they are refused before more are read."""
        kept, rows, size = list[pa.RecordBatch](), 0, 0
        for batch in batches:
            kept.append(batch)
            count(batch.nbytes)
            rows, size = rows + len(batch), size + batch.nbytes
            if rows > LARGEST_SNAPSHOT or size > SNAPSHOT_BYTES:
                raise UsageError(
                    f'view "{self._view}" has more rows than a client may begin with',
                    detail=f"it may have {LARGEST_SNAPSHOT:,} rows, of {SNAPSHOT_BYTES >> 20} MiB",
                    hint="follow a part of it, by key= or where=, or read its rows by pages",
                )
        return kept

    def rebuilt_since(self, offsets: Offsets) -> bool:
        """Tell whether a change is of another version than the newest one."""
        return version_of_change(offsets[0]) != version_of_change(self._open().sequence())

    def _open(self) -> View:
        return self._views.view(self._view)


def _ahead(error: UsageError, newest: int) -> OffsetLost:
    """Return the error for a store that was begun anew, or has lost its end: a client has seen more of it."""
    hint = "read the rows again, with snapshot=true"
    return OffsetLost(error.message, detail=str(error.detail), hint=hint, missed=0, earliest=newest)


def _items(changes: Sequence[Change], keyed: KeyedSchema) -> list[ChangeItem]:
    if not changes:
        return []
    keys = encode_values(key_rows([each.key for each in changes], keyed.key_fields))
    old = _row_texts([each.old for each in changes], keyed.schema)
    new = _row_texts([each.new for each in changes], keyed.schema)
    # One by one, for each becomes an event of its own; what is in them was encoded by columns.
    return [
        ChangeItem(change, key, before, after, _json(change, change.kind, key, before, after))
        for change, key, before, after in zip(changes, keys, old, new, strict=True)
    ]


def _row_texts(rows: Sequence[dict[str, Any] | None], schema: pa.Schema) -> list[bytes]:
    nullable = pa.schema([field.with_nullable(True) for field in schema])
    texts = encode_rows(pa.RecordBatch.from_pylist([row or {} for row in rows], nullable))
    return [b"null" if row is None else text for row, text in zip(rows, texts, strict=True)]


def _json(change: Change, kind: str, key: bytes, old: bytes, new: bytes) -> bytes:
    return b'{"sequence":%d,"kind":"%s","key":%s,"old":%s,"new":%s,"batch":%d}' % (
        change.sequence, kind.encode(), key, old, new, change.batch,
    )  # fmt: skip


def _pieces(batches: Sequence[pa.RecordBatch]) -> Iterator[Sequence[bytes]]:
    for batch in batches:
        for at in range(0, len(batch), _ROWS):
            yield encode_rows(batch.slice(at, _ROWS))
