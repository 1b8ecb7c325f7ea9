"""The sink of a cache: a batch is one script on the server, or several if it is large.

Redis has no transaction that could be given up in the middle, but runs a script alone. A row carries the
version of the batch that wrote it, and a deletion is remembered for some minutes, so that whatever comes late
is known to be late. Invariant: a batch of one piece is visible whole or not at all; of several pieces those
that were written stay, and the batch, which comes again, writes them again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import orjson
import pyarrow as pa

from headwater import durations
from headwater.errors import SchemaError, SinkRefused, UsageError
from headwater.sinks import crash
from headwater.sinks.cache import script
from headwater.sinks.cache.connection import connect, translated_errors
from headwater.sinks.cache.declaration import OWN, VERSION, CachePlace, declare_cache, escaped
from headwater.sinks.cache.reading import CacheReading, published
from headwater.sinks.change_version import change_version
from headwater.sinks.fencing import dropped, taken_over
from headwater.sinks.key_text import key_texts
from headwater.sinks.sink import Batch, Contents, NumberedSink
from headwater.topic import Topic
from headwater.values import jsonl
from headwater.values.fitting import Fitted
from headwater.values.keyed import KeyedSchema, settle

PIECE_ROWS, PIECE_BYTES = 5_000, 4 << 20
"""Rows, and about as many bytes, that one script writes: the server serves nobody else meanwhile."""
_PIPELINE = 8
"""Pieces that are on their way at once."""
_REMEMBERED = timedelta(minutes=10)


class CacheSink(NumberedSink):
    """Keeps the rows of a node in Redis or Valkey, each as JSON text under its prefix and key.

    ``GET customer:42`` gives ``{"_version":…,"id":42,"name":"Ada"}``, without the columns that are null. Of
    several rows with one key the last counts; ``_deleted`` deletes the key, and leaves for ten minutes the
    version of the deletion under ``headwater:gone:…``. With ``ttl`` a key goes by itself so long after it was
    written last.

    A batch of up to 5,000 rows is one script: whole or not at all, with its number. A larger one is several,
    each of which looks at the epoch first; after a crash between two of them readers see a part of the batch
    until it comes again. Commits are as durable as the server's ``appendfsync`` makes them: a server that has
    lost a batch is refused by the next commit.
    """

    def __init__(
        self,
        url: str,
        schema: str | pa.Schema,
        key: str | tuple[str, ...],
        *,
        prefix: str,
        ttl: str | timedelta | None = None,
        version: int = 1,
    ):
        self._keyed = declare_cache(schema, key, prefix)
        self._public, self._version = CachePlace(prefix), version
        self._ttl = 0 if ttl is None else round(durations.interval(ttl).total_seconds() * 1000)
        self._client = connect(url)
        self._begin = self._client.register_script(script.BEGIN)
        self._commit = self._client.register_script(script.COMMIT)
        self._place = self._public
        self._epoch: int | None = None

    def begin(self) -> int:
        """Take over from any other runner; return the number of the last batch committed, or -1."""
        key = ",".join(self._keyed.key)
        with translated_errors(self._keyed.what):
            place = self._place = self._found_place()
            if not self._client.exists(place.marker):
                self._check_free(place)
            epoch, last, held = self._begin(keys=[place.marker], args=[key, self._version])
        if not epoch:
            raise SchemaError(
                f"{self._keyed.what} has another key",
                detail=f"it has ({held.decode()}), asked for ({key})",
                hint="write under another prefix",
            )
        crash.point("cache: begun")
        self._epoch, self._last = int(epoch), int(last)
        return self._last

    def commit(self, batch: Batch) -> bool:
        """Write a batch; return False if it was there before."""
        if self._epoch is None:
            raise UsageError(f"sink of {self._keyed.what} has not begun", hint="call begin() first")
        settled = settle(batch.rows, self._keyed)
        crash.point("cache: before the script")
        answers = self._run(list(self._pieces(settled, batch, self._epoch)))
        self._check(answers)
        if b"there" in answers:
            return False
        self._last = batch.number
        crash.point("cache: committed")
        return True

    def read_back(self) -> Contents:
        """Return the rows under the prefix."""
        with translated_errors(self._keyed.what):
            place = self._found_place()
        return CacheReading(self._client, self._keyed, place, self._version).contents(self._ttl > 0)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _found_place(self) -> CachePlace:
        """Return where the version is: at the prefix if readers see it, and else beside it."""
        there = published(self._client, self._public)
        if self._version < there:
            raise dropped(self._keyed.what, self._version)
        return self._public if self._version == there else self._public.beside(self._version)

    def _run(self, pieces: list[_Piece]) -> list[bytes]:
        answers: list[bytes] = []
        with translated_errors(self._keyed.what):
            for at in range(0, len(pieces), _PIPELINE):
                with self._client.pipeline(transaction=False) as pipeline:
                    for piece in pieces[at : at + _PIPELINE]:
                        self._commit(keys=piece.keys, args=piece.arguments, client=pipeline)
                    answers += pipeline.execute()
                crash.point("cache: pieces written")
        return answers

    def _pieces(self, settled: Fitted, batch: Batch, epoch: int) -> Iterator[_Piece]:
        version = change_version(batch.number, epoch, self._version)
        places = (
            [self._place.prefix + text for text in key_texts(settled.rows, self._keyed)]
            if len(settled)
            else []
        )
        values = _values(settled, self._keyed, version)
        ends = _ends([len(value) for value in values])
        for start, end in zip([0, *ends], [*ends, len(values)], strict=True):
            progress = _progress(batch) if end == len(values) else ""
            header = [epoch, self._last, batch.number, version, self._ttl,
                      int(_REMEMBERED.total_seconds() * 1000), f"{OWN}gone:", progress]  # fmt: skip
            yield _Piece([self._place.marker, *places[start:end]], [*header, *values[start:end]])

    def _check(self, answers: list[bytes]) -> None:
        if b"fenced" in answers:
            raise taken_over(self._keyed.what)
        if b"lost" in answers:
            raise SinkRefused(
                f"{self._keyed.what} has lost batches that were committed",
                detail=f"batch {self._last} is not there: the server was emptied or restored, or crashed",
                hint="restore it, or delete the keys and compute the node anew; see `appendfsync always`",
            )

    def _check_free(self, place: CachePlace) -> None:
        """Refuse rows of ours without their record: new ones could look older than they."""
        for key in self._client.scan_iter(match=escaped(place.prefix) + "*", count=1000, _type="string"):
            if self._client.getrange(key, 0, 11) == b'{"_version":':
                raise SinkRefused(
                    f"{self._keyed.what} has rows, but the record of how far they go is gone",
                    detail=f'the key "{place.marker}" is not there',
                    hint="delete the keys under the prefix, or choose another prefix",
                )


@dataclass(frozen=True)
class _Piece:
    """What one script writes."""

    keys: list[str]
    arguments: list[Any]


def _values(settled: Fitted, keyed: KeyedSchema, version: int) -> list[bytes]:
    """Return the rows as they are stored; nothing for a deletion."""
    if not len(settled):
        return []
    texts = jsonl.encode(settled.rows, Topic(keyed.what, (keyed.schema,)))
    head = b'{"%s":%d,' % (VERSION.encode(), version)
    # A row at a time, as the protocol of the server is.
    return [
        b"" if gone else head + text[1:] for text, gone in zip(texts, settled.deleted.tolist(), strict=True)
    ]


def _ends(sizes: list[int]) -> list[int]:
    """Return where pieces end, except the last one."""
    ends, rows, total = [], 0, 0
    for number, size in enumerate(sizes):
        if rows == PIECE_ROWS or (rows and total + size > PIECE_BYTES):
            ends.append(number)
            rows = total = 0
        rows, total = rows + 1, total + size
    return ends


def _progress(batch: Batch) -> str:
    positions = [str(position) for position in batch.positions]
    return orjson.dumps({"positions": positions, "clock": batch.watermark}).decode()
